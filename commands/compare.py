"""compare: runs side by side."""

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .answers import Given, one_line_errors, with_given, write
from .arguments import FILE, REFERENCES, RUN
from .screen import console

if TYPE_CHECKING:
    from ..evidence import Run

_NOTHING_COMPARABLE = 4


@click.command(
    epilog="""\b
Exit codes: 0 some figure could be compared, 4 nothing could be, 2 something to mend (two to ten runs, each once)."""
)
@click.argument("paths", metavar="RUN RUN...", type=RUN, nargs=-1, required=True)
@click.option("-o", "--output", type=FILE, default=None, help="Write the comparison as one self-contained HTML page.")
@click.option(
    "--history",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default=None,
    metavar="DIR",
    help="A folder of run directories: repeated runs of the same cluster show the variance from run to run.",
)
@REFERENCES
@click.option("--json", "as_json", is_flag=True, help="Print the comparison as one JSON document on stdout.")
def compare(
    paths: tuple[Path, ...], output: Path | None, history: Path | None, references: Path | None, as_json: bool
) -> None:
    """Put two to ten runs side by side: what differs, by how much, and what cannot be told apart.

    Of different providers, sizes and dates: figures an accelerator and a dollar, with intervals that include the
    variance from run to run, and an order with its reasons. Each run is judged again by its own policy.
    """
    with one_line_errors():
        from .. import __version__
        from ..evidence import read_run
        from ..reports.comparison_page import render_comparison
        from ..reports.comparison_terminal import show_comparison
        from ..scoring.comparison import compare as put_side_by_side
        from ..scoring.comparison_model import comparison_json

        runs = (with_given(read_run(path), Given(references=references)) for path in paths)
        found = put_side_by_side(runs, _history(history, {path.resolve() for path in paths}) if history else ())
        shown = console(as_json)
        show_comparison(found, shown)
        if output is not None:
            write(output, render_comparison(found, __version__), inside=output)
            shown.print(f"page: {output}", markup=False, soft_wrap=True)
        if as_json:
            with contextlib.suppress(BrokenPipeError):
                sys.stdout.write(comparison_json(found).decode())
        sys.exit(0 if found.comparable else _NOTHING_COMPARABLE)


def _history(folder: Path, given: set[Path]) -> "Iterator[Run]":
    """The runs in a folder that are not among those compared; what is none is said, and left out."""
    from ..evidence import RunError, read_run

    for place in sorted(folder.iterdir()):
        if not (place / "run.json").is_file() or place.is_symlink() or place.resolve() in given:
            continue
        try:
            yield read_run(place)
        except RunError as error:
            click.echo(f"note: left out of the history: {error}", err=True)
