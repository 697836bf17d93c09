"""run: measure, judge, and write the report."""

import contextlib
import functools
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .answers import console, judge, one_line_errors, own_costs, own_references, sign_measured
from .arguments import BUNDLE, COSTS, EXIT_CODES, LISTEN, REFERENCES, REMOTE_PYTHON, RUN, RUN_FLOPS, SIGN, SSH, number

if TYPE_CHECKING:
    from ..runner.accepting import JoinRequest

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
    type=click.FloatRange(min=0, min_open=True, max=1e6),
    callback=number,
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
    type=click.IntRange(min=0),
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
    type=click.FloatRange(min=1),
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
@click.option("--json", "as_json", is_flag=True, help="Print the verdict (or plan) as one JSON document on stdout.")
@click.pass_context
def run(
    context: click.Context,
    /,
    *,
    profile: str | None,
    policy: str | None,
    references: Path | None,
    costs: Path | None,
    resume: Path | None,
    join: Path | None,
    partners: str | None,
    replaces: tuple[str, ...],
    rerun_changed: bool,
    dry_run: bool,
    as_json: bool,
    ssh: str | None,
    remote_python: str | None,
    listen: str | None,
    join_within: float,
    allow_unlike: bool,
    bundle: str | None,
    key: Path | None,
    **wishes: Any,
) -> None:
    """Measure this machine, the nodes of --hosts, or those on which a launcher starts this; judge and report.

    Any verdict is an answer: the exit code says which. Everything measured is kept in the run directory.
    """
    with one_line_errors(), contextlib.ExitStack() as stack:
        from ..evidence.reading import carried_baseline
        from ..evidence.signatures import try_key
        from ..probes.profiles import load_profile
        from ..runner.command import (
            Options,
            bundle_for,
            planned,
            reach_from,
            refuse_with_resume,
            refuse_without_join,
            run_join,
            run_new,
            run_on,
            show_plan,
        )
        from ..runner.launched import attended, say_where, within_launcher
        from ..runner.run import plan_of_join
        from ..scoring import document_for, doubts_of

        if not dry_run and attended(wishes["hosts"], join_within):
            return
        if key is not None:
            try_key(key)
        carried = stack.enter_context(bundle_for(None if dry_run else bundle, wishes["hosts"], resume))
        reach = reach_from(
            ssh=ssh,
            remote_python=remote_python,
            listen=listen,
            join_within=join_within,
            allow_unlike=allow_unlike,
            bundle=carried,
        )
        if not dry_run:
            reach = within_launcher(reach, wishes["hosts"])
        shown, command = console(as_json), ("hwlottery", *sys.argv[1:])
        given = context.get_parameter_source
        stated = {name for name in context.params if given(name) == click.core.ParameterSource.COMMANDLINE}
        if join is None:
            refuse_without_join(stated)
        if resume is not None:
            refuse_with_resume(stated)
            out = run_on(
                resume,
                rerun_changed=rerun_changed,
                command=command,
                reach=reach,
                console=shown,
                doubts=functools.partial(doubts_of, baseline=carried_baseline(resume)),
            )
        elif join is not None:
            kept = {name: wishes[name] for name in ("hosts", "gpus_per_node", "out")}
            more = {"partners": partners, "replaces": replaces, "rerun_changed": rerun_changed, "command": command}
            request = _join_request(join, stated, reach=reach, doubts=doubts_of, **more, **kept)
            if dry_run:
                show_plan(plan_of_join(request), shown, as_json=as_json)
                return
            out = run_join(request, shown)
        else:
            chosen = load_profile(profile or "smoke")
            demanded = document_for(policy, chosen.name)
            options = Options(
                profile=chosen,
                policy=demanded,
                command=command,
                reach=reach,
                doubts=doubts_of,
                references=own_references(references),
                costs=own_costs(costs),
                **wishes,
            )
            if dry_run:
                show_plan(planned(options), shown, as_json=as_json)
                return
            out = run_new(options, shown)
        say_where(reach, out, shown)
        if key is not None:
            sign_measured(out, key)
    judge(out, None, as_json=as_json, with_report=True)


def _join_request(path: Path, stated: set[str], **wishes: Any) -> "JoinRequest":
    """What is asked of a join to an accepted run. Raises RunError where that run is not whole."""
    from ..evidence import read_run
    from ..runner.command import join_request
    from ..scoring.acceptance import good_partners

    accepted = read_run(path)
    return join_request(accepted, good_partners(accepted), stated, **wishes)
