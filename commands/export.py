"""export: a run in other forms."""

from pathlib import Path
from typing import Literal

import click

from .answers import one_line_errors, write
from .arguments import FILE, RUN


@click.command()
@click.argument("path", metavar="RUN", type=RUN)
@click.option(
    "--format",
    "form",
    type=click.Choice(["csv", "junit"]),
    required=True,
    help="csv: every measurement; junit: the verdict's checks, for a CI system.",
)
@click.option("-o", "--output", type=FILE, default=None, help="Where to write. [default: stdout]")
def export(path: Path, form: Literal["csv", "junit"], output: Path | None) -> None:
    """Write a run's measurements or checks in another form."""
    with one_line_errors():
        from ..evidence import read_run
        from ..reports.exports import exported

        text = exported(read_run(path), form)
        if output is None:
            click.echo(text, nl=False)
        else:
            write(output, text, inside=path)
