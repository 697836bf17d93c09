"""verify: is a run directory whole and unaltered?"""

import sys
from pathlib import Path

import click

from .answers import console, one_line_errors
from .arguments import RUN


@click.command()
@click.argument("path", metavar="RUN", type=RUN)
@click.option("--json", "as_json", is_flag=True, help="Print the problems as one JSON document on stdout.")
def verify(path: Path, as_json: bool) -> None:
    """Check that a run directory is whole and unaltered. Exits with 6 where it is not."""
    with one_line_errors():
        from ..reports.problems import show_problems

        sys.exit(6 if show_problems(path, console(as_json), as_json=as_json) else 0)
