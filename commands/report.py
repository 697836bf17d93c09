"""report: a run's page."""

from pathlib import Path

import click

from .answers import one_line_errors, with_references, write_page
from .arguments import FILE, REFERENCES, RUN


@click.command()
@click.argument("path", metavar="RUN", type=RUN)
@click.option("-o", "--output", type=FILE, default=None, help="Where to write the page. [default: RUN/report.html]")
@REFERENCES
def report(path: Path, output: Path | None, references: Path | None) -> None:
    """Write a run's report as one self-contained HTML page. Always judges again first."""
    with one_line_errors():
        from ..evidence import read_run
        from ..scoring import score_run

        found = with_references(read_run(path), references)
        written = write_page(found, score_run(found), output or path / "report.html")
    click.echo(f"wrote {written}")
