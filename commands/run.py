"""run: measure, judge, and write the report."""

import functools
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .answers import judge, one_line_errors, own_costs, own_references
from .arguments import (
    A_WEEK_S,
    ACCELERATORS,
    BUNDLE,
    COSTS,
    EXIT_CODES,
    LISTEN,
    REFERENCES,
    REMOTE_PYTHON,
    RUN,
    RUN_FLOPS,
    SIGN,
    SSH,
    Number,
)
from .starting import Starting, command_line, leads, measured, new_run, stated, taken_apart

if TYPE_CHECKING:
    from rich.console import Console

    from ..runner.accepting import JoinRequest
    from ..runner.joining import Reach
    from ..runner.preview import Preview
    from .starting import Work

TIERS = ("bare-root", "bare", "vm-root", "vm", "container-root", "container")


@click.command(epilog=EXIT_CODES)
@click.option(
    "--profile",
    default=None,
    metavar="NAME|FILE",
    help="What to measure: smoke, prolog, quick, recheck, acceptance, or a YAML file. [default: smoke]",
)
@click.option(
    "--policy",
    default=None,
    metavar="NAME|FILE",
    help="What is demanded: a name or a YAML file. [default: the profile's]",
)
@REFERENCES
@click.option("--provider", default=None, help="Who rents the cluster out; shown in the report.")
@click.option("--cluster", default=None, help="Which of the provider's clusters; shown in the report.")
@click.option(
    "--price",
    type=Number(min=0, min_open=True, max=1e6),
    default=None,
    metavar="USD",
    help="USD a GPU and hour, for the money in plan and report.",
)
@COSTS
@RUN_FLOPS
@click.option(
    "--tier",
    type=click.Choice(TIERS),
    default=None,
    help="Declare the access tier instead of finding it by capability.",
)
@click.option(
    "--scratch",
    type=click.Path(file_okay=False, path_type=Path),
    default=None,
    metavar="DIR",
    help="Where filesystem and checkpoint probes write: the storage you will train on. [default: here]",
)
@click.option(
    "--keep-checkpoint",
    type=click.Path(file_okay=False, path_type=Path),
    default=None,
    metavar="DIR",
    help="Leave a small checkpoint there, on storage that all nodes share, for the next recheck to look for.",
)
@click.option(
    "--hosts",
    default=None,
    metavar="NODESET",
    help="Measure these nodes, reached by ssh: node[01-16], or n1,n2. [default: this machine alone]",
)
@click.option(
    "--gpus-per-node",
    type=ACCELERATORS,
    default=None,
    metavar="N",
    help="With --hosts: what each node is to have; 0 for its CPUs. [default: as this machine]",
)
@SSH
@REMOTE_PYTHON
@BUNDLE
@LISTEN
@click.option(
    "--join-within",
    type=Number(min=1, max=A_WEEK_S),
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="How long nodes may take to join; the run goes on without those that have not.",
)
@click.option(
    "--allow-unlike",
    is_flag=True,
    help="With --hosts: run although a node's torch or Python is another than this machine's.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=None,
    metavar="DIR",
    help="The run directory to make. [default: runs/PROFILE-TIME]",
)
@click.option(
    "--resume",
    type=RUN,
    default=None,
    metavar="RUN",
    help="Go on with a run that was cut short, with its own profile, policy and seed.",
)
@click.option(
    "--join",
    type=RUN,
    default=None,
    metavar="RUN",
    help="Take the nodes of --hosts into an accepted run, by its profile and policy: measured alone and with partners "
    "among its nodes, judged together. RUN stays as it is.",
)
@click.option(
    "--partners",
    default=None,
    metavar="NODESET",
    help="With --join: the accepted nodes to measure with. [default: the four best]",
)
@click.option(
    "--replaces",
    multiple=True,
    metavar="FORMER=NEW",
    help="With --join: NEW stands in for FORMER; a node of --hosts that RUN has too stands in for itself.",
)
@click.option(
    "--rerun-changed",
    is_flag=True,
    help="With --resume or --join: software or hardware has changed since, so measure everything again.",
)
@click.option(
    "--only", multiple=True, metavar="PROBE", help="Run this probe alone, beside inventory; may be given several times."
)
@SIGN
@click.option("--seed", type=click.IntRange(0, 2**63 - 1), default=0, show_default=True, help="The run's seed.")
@click.option("--dry-run", is_flag=True, help="Say what would run, for how long and for how much money; run nothing.")
@click.option("--plain", is_flag=True, help="Print lines alone, as into a file: no colours, nothing that moves.")
@click.option("--json", "as_json", is_flag=True, help="Print the verdict (or plan) as one JSON document on stdout.")
@click.pass_context
def run(context: click.Context, /, *, resume: Path | None, join: Path | None, **given: Any) -> None:
    """Measure this machine, the nodes of --hosts, or those on which a launcher starts this; judge and report.

    Any verdict is an answer: the exit code says which. Everything measured is kept in the run directory.
    """
    with one_line_errors():
        starting, wishes = taken_apart(given)
        if not leads(starting, wishes["hosts"]):
            return
        work = _work(starting, stated(context), resume, join, wishes)
        out = measured(starting, work, hosts=wishes["hosts"], resumed=resume)
        if out is None:
            return
    judge(out, None, as_json=starting.as_json, with_report=True, plain=starting.plain)


def _work(
    starting: Starting, told: set[str], resume: Path | None, join: Path | None, wishes: dict[str, Any]
) -> "Work":  # fmt: skip
    """What is asked for: to go on with a run, to take nodes into one, or a new one. Raises RunError for options that
    do not go together."""
    from ..runner.command import refuse_with_resume, refuse_without_join

    if join is None:
        refuse_without_join(told)
    if resume is not None:
        refuse_with_resume(told)
        return _going_on(resume, rerun_changed=wishes["rerun_changed"])
    if join is not None:
        return _taking_in(starting, join, told, wishes)
    return _new(starting, wishes)


def _going_on(path: Path, *, rerun_changed: bool) -> "Work":
    from ..evidence.reading import carried_baseline
    from ..runner.command import run_on
    from ..scoring import doubts_of

    def work(reach: "Reach", shown: "Console") -> Path:
        doubts = functools.partial(doubts_of, baseline=carried_baseline(path))
        return run_on(
            path, rerun_changed=rerun_changed, command=command_line(), reach=reach, console=shown, doubts=doubts
        )

    return work


_OF_A_JOIN = ("hosts", "gpus_per_node", "out", "partners", "replaces", "rerun_changed")


def _taking_in(starting: Starting, join: Path, told: set[str], wishes: dict[str, Any]) -> "Work":
    from ..runner.command import run_join
    from ..runner.run import plan_of_join

    def work(reach: "Reach", shown: "Console") -> "Path | Preview":
        request = _join_request(join, told, reach=reach, **{name: wishes[name] for name in _OF_A_JOIN})
        return plan_of_join(request) if starting.dry_run else run_join(request, shown)

    return work


def _join_request(path: Path, told: set[str], **wishes: Any) -> "JoinRequest":
    """What is asked of a join to an accepted run. Raises RunError where that run is not whole."""
    from ..evidence import read_run
    from ..runner.command import join_request
    from ..scoring import doubts_of
    from ..scoring.acceptance import good_partners

    accepted = read_run(path)
    return join_request(accepted, good_partners(accepted), told, doubts=doubts_of, command=command_line(), **wishes)


_NOT_OF_A_NEW_RUN = frozenset(("profile", "policy", "references", "costs", "partners", "replaces", "rerun_changed"))


def _new(starting: Starting, wishes: dict[str, Any]) -> "Work":
    from ..probes.profiles import load_profile
    from ..scoring import document_for, doubts_of

    profile = load_profile(wishes["profile"] or "smoke")
    return new_run(
        starting,
        profile=profile,
        policy=document_for(wishes["policy"], profile.name),
        doubts=doubts_of,
        references=own_references(wishes["references"]),
        costs=own_costs(wishes["costs"]),
        **{name: value for name, value in wishes.items() if name not in _NOT_OF_A_NEW_RUN},
    )
