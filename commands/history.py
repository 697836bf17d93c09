"""history: many runs of a cluster, over weeks."""

import contextlib
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .answers import console, one_line_errors
from .arguments import RUN, number

if TYPE_CHECKING:
    from ..scoring.history import Skipped
    from ..scoring.past_runs import PastRun

MOST_RUNS = 5000

EXIT_CODES = """\b
Exit codes: 0 all nodes covered and none keeps failing, 3 a machine that keeps failing is still there,
4 a node is not covered, or nothing was read; 2 something to mend before anything is read."""


@click.command(epilog=EXIT_CODES)
@click.argument("folder", metavar="DIR", type=RUN)
@click.option(
    "--days",
    type=click.FloatRange(min=0, min_open=True),
    callback=number,
    default=7.0,
    show_default=True,
    help="Within how many days every node must have been measured, and with a partner.",
)
@click.option(
    "--nodes", default=None, metavar="NODESET", help="The cluster's nodes now. [default: all that a run named]"
)
@click.option(
    "--at",
    type=click.DateTime(["%Y-%m-%d", "%Y-%m-%dT%H:%M:%S"]),
    default=None,
    help="Judge as of this time (UTC), without later runs. [default: now]",
)
@click.option("--quiet", is_flag=True, help="Print nothing but errors: for cron. The exit code is the answer.")
@click.option("--json", "as_json", is_flag=True, help="Print all of it as one JSON document on stdout.")
def history(
    *, folder: Path, days: float, nodes: str | None, at: datetime | None, quiet: bool, as_json: bool
) -> None:  # fmt: skip
    """Judge the runs in a folder together: rolling coverage, machines that keep failing, each metric over weeks.

    A machine is known by its hardware: a node that was returned and comes back under another name is told. What
    cannot be read is named and left out.
    """
    with one_line_errors():
        import msgspec

        from ..cluster.ssh import node_set
        from ..reports.over_time import show_history
        from ..scoring.history import history_of

        skipped: list[Skipped] = []
        past = [run for place in _places(folder) if (run := _read(place, skipped)) is not None]
        when = at.replace(tzinfo=UTC) if at is not None else datetime.now(UTC)
        names = node_set(nodes) if nodes is not None else ()
        told = history_of(past, at=when, days=days, nodes=names, skipped=tuple(skipped))
        show_history(told, console(as_json, quiet=quiet))
        if as_json:
            document = {**msgspec.to_builtins(told), "exit_code": told.exit_code}
            with contextlib.suppress(BrokenPipeError):
                sys.stdout.write(msgspec.json.format(msgspec.json.encode(document), indent=1).decode() + "\n")
        sys.exit(told.exit_code)


def _places(folder: Path) -> Iterator[Path]:
    """The run directories in a folder, in order; links are not followed."""
    found = sorted(entry for entry in folder.iterdir() if entry.is_dir() and not entry.is_symlink())
    yield from found[:MOST_RUNS]


def _read(place: Path, skipped: "list[Skipped]") -> "PastRun | None":
    """What history needs of a run; None of what is none, which is named where it looks like one."""
    from ..evidence import read_run
    from ..scoring import score_run
    from ..scoring.history import Skipped
    from ..scoring.past_runs import past_run

    try:
        run = read_run(place)
        found = past_run(run, score_run(run))
    except Exception as error:  # noqa: BLE001  # one odd directory among many must not hide what the others say
        skipped.append(Skipped(path=place.name, why=" ".join(str(error).split())[:300] or type(error).__name__))
        return None
    if found is None:
        skipped.append(Skipped(path=place.name, why="never begun, or simulated"))
    return found
