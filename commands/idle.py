"""recheck --idle: which of Slurm's idle nodes are due, and the job that rechecks them."""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from .answers import Also, write_also
from .arguments import NODES, RUN, Number
from .screen import console
from .starting import stated

if TYPE_CHECKING:
    from rich.console import Console

    from ..evidence import Run
    from ..runner.idle import Wanted
    from ..scoring.history import ClusterHistory

IDLE = (
    click.option("--partition", default=None, metavar="NAME", help="With --idle: of this partition. [default: of all]"),
    click.option(
        "--older-than",
        type=Number(min=0, max=36_500),
        default=5.0,
        show_default=True,
        metavar="DAYS",
        help="With --idle: a node is due when it was last measured, or with a partner, longer ago.",
    ),
    click.option(
        "--history",
        type=RUN,
        default=None,
        metavar="DIR",
        help="With --idle: the folder of runs that says when that was, and gets this one. [default: the baseline's]",
    ),
    click.option("--at-most", type=NODES, default=None, metavar="N", help="With --idle: so many nodes."),
    click.option("--time", default="04:00:00", show_default=True, metavar="LIMIT", help="With --idle: of the job."),
    click.option(
        "--within",
        type=click.IntRange(min=1, max=86_400),
        default=60,
        show_default=True,
        metavar="SECONDS",
        help="With --idle: give up where Slurm has not given the nodes by then.",
    ),
    click.option(
        "--srun", default=None, metavar="ARGUMENTS", help="With --idle: more for srun, such as '--qos=scavenger'."
    ),
)
OF_IDLE = ("partition", "older_than", "history", "at_most", "time", "within", "srun")
_NOT_WITH_IDLE = frozenset(("hosts", "ssh", "remote_python", "bundle", "listen"))
_OF_THE_OUTER = frozenset((*OF_IDLE, "idle", "dry_run", "baseline", "out", "junit", "prometheus"))


@dataclass(frozen=True, kw_only=True, slots=True)
class Job:
    """What is started on the idle nodes."""

    wanted: "Wanted"
    command: tuple[str, ...]
    out: Path


def with_options(options: Sequence[Callable[[Any], Any]]) -> Callable[[Any], Any]:
    """All of these options on a command, in their order in its help."""

    def add(command: Any) -> Any:
        for option in reversed(options):
            command = option(command)
        return command

    return add


def refuse_without_idle(told: set[str]) -> None:
    """Options that only --idle has. Raises RunError."""
    _refuse(told & set(OF_IDLE), "says something of idle nodes only: give --idle")


def _refuse(options: set[str], why: str) -> None:
    from ..evidence import RunError

    names = ", ".join("--" + name.replace("_", "-") for name in sorted(options))
    if names:
        raise RunError(f"{names} {why}")


def recheck_idle(context: click.Context, baseline: Path, given: Mapping[str, Any]) -> NoReturn:
    """Recheck the idle nodes that are due, and exit with the verdict; 0 where none is due, 4 where none can be had."""
    from ..evidence import read_run
    from ..runner.idle import run_step
    from ..runner.once import alone
    from ..runner.rechecking import check_baseline

    told = stated(context)
    _refuse(told & _NOT_WITH_IDLE, "cannot be given with --idle: Slurm starts the nodes")
    shown = console(context.params["as_json"], quiet=context.params["quiet"])
    before = read_run(baseline)
    check_baseline(before)
    job = _job(context, before, given, shown)
    if context.params["dry_run"]:
        _show(job, shown, as_json=context.params["as_json"])
        sys.exit(0)
    with alone(f"idle nodes against {baseline.resolve()}"):
        code = run_step(job.wanted, job.command, lambda line: _say(line, shown))
    _write_here(job.out, Also(junit=context.params["junit"], prometheus=context.params["prometheus"]))
    sys.exit(code)


def _write_here(out: Path, also: Also) -> None:
    """What other programs of this machine read is written here, and not where the job ran. Raises RunError where its
    run directory is on no storage that both see."""
    if also == Also():
        return
    from ..evidence import read_run
    from ..scoring import score_run

    found = read_run(out)
    write_also(found, score_run(found), also)


def _job(context: click.Context, before: "Run", given: Mapping[str, Any], shown: "Console") -> Job:
    """The job to start. Exits where there is none to start."""
    from ..runner.idle import Wanted, idle_in, split
    from ..runner.rechecking import accelerators_of
    from ..scoring.due import due, due_first

    folder = given["history"] or before.path.resolve().parent
    cluster, idle = _covered(before, folder, given["older_than"]), idle_in(given["partition"])
    pairs = _measures_pairs(context, before)
    nodes = due_first(cluster, idle, given["at_most"], pairs=pairs)
    _tell(cluster, idle, nodes, [one.node for one in due(cluster, pairs=pairs)], shown)
    gpus = context.params["gpus_per_node"]
    wanted = Wanted(
        nodes=nodes,
        gpus_per_node=accelerators_of(before.header) if gpus is None else gpus,
        partition=given["partition"],
        time=given["time"],
        within_s=given["within"],
        more=split(given["srun"]),
    )
    out = context.params["out"] or folder / f"recheck-{datetime.now(UTC):%Y%m%d-%H%M%S}"
    command = ("recheck", "--baseline", str(before.path.resolve()), "--out", str(out.absolute()))
    return Job(wanted=wanted, command=(*command, *_given_again(context)), out=out)


def _covered(before: "Run", folder: Path, days: float) -> "ClusterHistory":
    """The coverage of the baseline's nodes, by the runs in a folder and the baseline itself."""
    from ..evidence import RunError
    from ..scoring import score_run
    from ..scoring.history import history_of
    from ..scoring.past_runs import past_run
    from .past import past_runs_in

    own = past_run(before, score_run(before))
    if own is None:
        raise RunError(f"{before.path} was never begun: it says nothing of when its nodes were measured")
    names = tuple(node.node for node in before.header.promised)
    history = history_of([*past_runs_in(folder)[0], own], at=datetime.now(UTC), days=days, nodes=names)
    return next(one for one in history.clusters if one.cluster == own.cluster)


def _measures_pairs(context: click.Context, before: "Run") -> bool:
    """Whether this recheck will measure nodes with partners, by its profile and --only."""
    from ..runner.rechecking import profile_of

    header = before.header
    profile, only = profile_of(context.params["profile"], header), context.params["only"] or header.only
    return profile.settings("pairs", header.device) is not None and (not only or "pairs" in only)


def _tell(
    cluster: "ClusterHistory", idle: Sequence[str], nodes: Sequence[str], late: Sequence[str], shown: "Console"
) -> None:
    """Who is due, and who of them is idle. Exits where nobody is, and where nobody of them can be had."""
    from ..scoring.words import several

    of = f"{len(late)} of {len(cluster.coverage)} nodes are due"
    if not late:
        shown.print("No node is due: nothing was started.", markup=False)
        sys.exit(0)
    if not nodes:
        here = several(sorted(set(idle) & {one.node for one in cluster.coverage}), 6) or "none of the baseline's nodes"
        told = f"{of}; idle: {here}. None of the due can be had with a partner: nothing was measured."
        shown.print(told, markup=False, soft_wrap=True)
        sys.exit(4)
    shown.print(f"{of}; rechecking {several(nodes, 12)}.", markup=False, soft_wrap=True)


def _given_again(context: click.Context) -> Iterator[str]:
    """The options that stand on the command line, for the command on the nodes."""
    told = stated(context)
    for option in context.command.params:
        value = context.params.get(option.name or "")
        if option.name not in told or option.name in _OF_THE_OUTER or not isinstance(option, click.Option):
            continue
        word = next(word for word in option.opts if word.startswith("--"))
        if option.is_flag:
            yield word
            continue
        several = value if isinstance(value, tuple) else (value,)
        yield from (f"{word}={one}" for one in several)


def _say(line: str, shown: "Console") -> None:
    """What the job says on stderr: errors always, the rest unless it is to be quiet."""
    if not shown.quiet or line.startswith(("hwlottery: ", "srun: error: ")):
        click.echo(line, err=True, nl=False)


def _show(job: Job, shown: "Console", *, as_json: bool) -> None:
    import shlex

    import msgspec

    from ..runner.idle import step_words

    words = step_words(job.wanted, "hwlottery-idle", job.command)
    shown.print(shlex.join(words), markup=False, soft_wrap=True)
    if as_json:
        sys.stdout.write(msgspec.json.encode({"nodes": job.wanted.nodes, "command": words}).decode() + "\n")
