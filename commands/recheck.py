"""recheck: the settings of an earlier run again, held against it; fit for cron."""

import contextlib
import functools
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .answers import Also, judge, one_line_errors, own_costs, own_references
from .arguments import EXIT_CODES, FILE
from .idle import IDLE, OF_IDLE, recheck_idle, refuse_without_idle, with_options
from .run import run
from .starting import Starting, leads, measured, new_run, stated, taken_apart

if TYPE_CHECKING:
    from ..evidence import Run

_NOT_OF_A_RECHECK = frozenset(("profile", "policy", "resume", "join", "partners", "replaces", "rerun_changed"))


@click.command(epilog=EXIT_CODES, params=[one for one in run.params if one.name not in _NOT_OF_A_RECHECK])
@click.option(
    "--baseline",
    type=click.Path(file_okay=False, path_type=Path),  # only the machine that leads needs it
    required=True,
    metavar="RUN",
    help="The earlier run to hold this one against: the last that was accepted. A copy of its records travels along.",
)
@click.option(
    "--profile",
    default=None,
    metavar="NAME|FILE",
    help="What to measure. [default: recheck, an hour, after quick, recheck or acceptance; else the baseline's]",
)
@click.option(
    "--policy",
    default=None,
    metavar="NAME|FILE",
    help="What is demanded, with baseline layers. [default: recheck with its profile; else the baseline's]",
)
@click.option("--quiet", is_flag=True, help="Print nothing but errors: for cron. The exit code is the verdict.")
@click.option("--junit", type=FILE, default=None, metavar="FILE", help="Write the checks there too, for a CI system.")
@click.option(
    "--prometheus",
    type=FILE,
    default=None,
    metavar="FILE",
    help="Write the run there too, for node_exporter's textfile collector.",
)
@click.option(
    "--idle",
    is_flag=True,
    help="Inside Slurm's cluster, from any machine with its commands: recheck the idle nodes that are due, those "
    "longest ago first, in a job of its own that starts now or not at all, and may be preempted.",
)
@with_options(IDLE)
@click.pass_context
def recheck(
    context: click.Context, /, *, baseline: Path, junit: Path | None, prometheus: Path | None, idle: bool, **given: Any
) -> None:  # fmt: skip
    """Measure again what an earlier run measured, and tell what has become worse from noise.

    Whatever is not given is as in the earlier run: nodes reached by ssh, provider, price, scratch, seed. Nodes are
    matched by their hardware, not by their names; changed software, settings or hardware are named beside what fell.
    """
    with one_line_errors():
        wanted = {name: given.pop(name) for name in OF_IDLE}
        if idle:
            recheck_idle(context, baseline, wanted)
        refuse_without_idle(stated(context))
        starting, wishes = taken_apart(given)
        if not leads(starting, wishes["hosts"]):
            return
        out = _again(starting, baseline, stated(context), wishes)
        if out is None:
            return
    also = Also(junit=junit, prometheus=prometheus)
    judge(out, None, as_json=starting.as_json, with_report=True, quiet=starting.quiet, plain=starting.plain, also=also)


def _again(starting: Starting, baseline: Path, told: set[str], wishes: dict[str, Any]) -> Path | None:
    """The run directory; None where a plan was asked for. Raises RunError where nothing can be held against the
    baseline, and where another recheck of it is under way."""
    from ..evidence import read_run
    from ..runner.once import alone
    from ..runner.rechecking import as_before, check_baseline

    before = read_run(baseline)
    check_baseline(before)
    documents = _documents(before, {name: wishes.pop(name) for name in ("profile", "policy", "references", "costs")})
    asked = as_before(before.header, wishes, told)
    with contextlib.nullcontext() if starting.dry_run else alone(str(baseline.resolve())):
        return measured(starting, new_run(starting, **documents, **asked), hosts=asked["hosts"])


def _documents(before: "Run", given: dict[str, Any]) -> dict[str, Any]:
    """What is measured and demanded, and what it is held against: as given, else by the earlier run."""
    from ..runner.rechecking import profile_of
    from ..scoring import doubts_of
    from ..scoring.policy import document_beside

    profile = profile_of(given["profile"], before.header)
    return {
        "profile": profile,
        "policy": document_beside(given["policy"], profile.name, before.header.policy),
        "references": own_references(given["references"]) or before.header.references,
        "costs": own_costs(given["costs"]) or before.header.costs,
        "baseline": before,
        "doubts": functools.partial(doubts_of, baseline=before),
    }
