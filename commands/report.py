"""report: a run's page."""

from pathlib import Path

import click

from .answers import Given, one_line_errors, with_given, write_page
from .arguments import COSTS, FILE, PROVIDER_RECORD, REFERENCES, RUN, RUN_FLOPS


@click.command()
@click.argument("path", metavar="RUN", type=RUN)
@click.option("-o", "--output", type=FILE, default=None, help="Where to write the page. [default: RUN/report.html]")
@REFERENCES
@COSTS
@RUN_FLOPS
@PROVIDER_RECORD
def report(
    *,
    path: Path,
    output: Path | None,
    references: Path | None,
    costs: Path | None,
    run_flops: float | None,
    provider_record: Path | None,
) -> None:
    """Write a run's report as one self-contained HTML page. Always judges again first."""
    with one_line_errors():
        from ..evidence import read_run
        from ..scoring import score_run
        from ..scoring.provider_record import provider_of

        record = provider_of(path, provider_record)
        given = Given(references=references, costs=costs, run_flops=run_flops)
        found = with_given(read_run(path), given)
        written = write_page(found, score_run(found), output or path / "report.html", record)
    click.echo(f"wrote {written}")
