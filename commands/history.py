"""history: many runs of a cluster, over weeks."""

import contextlib
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .answers import one_line_errors, write_whole
from .arguments import FILE, RUN, Number
from .past import past_runs_in
from .screen import console

if TYPE_CHECKING:
    from ..scoring.history import History

EXIT_CODES = """\b
Exit codes: 0 all nodes covered and none keeps failing, 3 a machine that keeps failing is still there,
4 a node is not covered, or nothing was read; 2 something to mend before anything is read."""


@click.command(epilog=EXIT_CODES)
@click.argument("folder", metavar="DIR", type=RUN)
@click.option(
    "--days",
    type=Number(min=0, min_open=True, max=36_500),
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
@click.option("-o", "--output", type=FILE, default=None, help="Write it as one self-contained HTML page.")
@click.option("--junit", type=FILE, default=None, metavar="FILE", help="Write it as JUnit XML, for a CI system.")
@click.option(
    "--prometheus",
    type=FILE,
    default=None,
    metavar="FILE",
    help="Write it for node_exporter's textfile collector: a file of its own beside that of the last run.",
)
@click.option("--quiet", is_flag=True, help="Print nothing but errors: for cron. The exit code is the answer.")
@click.option("--json", "as_json", is_flag=True, help="Print all of it as one JSON document on stdout.")
def history(
    *,
    folder: Path,
    days: float,
    nodes: str | None,
    at: datetime | None,
    output: Path | None,
    junit: Path | None,
    prometheus: Path | None,
    quiet: bool,
    as_json: bool,
) -> None:
    """Judge the runs in a folder together: rolling coverage, machines that keep failing, each metric over weeks.

    A machine is known by its hardware: a node that was returned and comes back under another name is told. What
    cannot be read is named and left out.
    """
    with one_line_errors():
        from ..reports.over_time import show_history

        told = _told(folder, at.replace(tzinfo=UTC) if at is not None else datetime.now(UTC), days, nodes)
        shown = console(as_json, quiet=quiet)
        show_history(told, shown)
        _write(told, folder, page=output, junit=junit, prometheus=prometheus)
        if output is not None:
            shown.print(f"page: {output}", markup=False, soft_wrap=True)
        if as_json:
            _print_json(told)
        sys.exit(told.exit_code)


def _told(folder: Path, at: datetime, days: float, nodes: str | None) -> "History":
    """What the runs in a folder say together. Raises RunError for a node set that is none."""
    from ..cluster.node_sets import node_set
    from ..scoring.history import history_of

    names = node_set(nodes, "--nodes") if nodes is not None else ()
    past, skipped = past_runs_in(folder)
    return history_of(past, at=at, days=days, nodes=names, skipped=skipped)


def _write(told: "History", folder: Path, *, page: Path | None, junit: Path | None, prometheus: Path | None) -> None:
    """Write what was asked for, each file whole or not at all."""
    if page is not None:
        from .. import __version__
        from ..reports.history_page import render_history

        write_whole(page, render_history(told, __version__).encode(), inside=folder)
    if junit is not None:
        from ..reports import history_junit

        write_whole(junit, history_junit.render(told).encode(), inside=folder)
    if prometheus is not None:
        from ..reports import history_prometheus

        write_whole(prometheus, history_prometheus.render(told).encode(), inside=folder)


def _print_json(told: "History") -> None:
    import msgspec

    document = {**msgspec.to_builtins(told), "exit_code": told.exit_code}
    with contextlib.suppress(BrokenPipeError):
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(document), indent=1).decode() + "\n")
