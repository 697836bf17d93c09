"""explain: what a metric means, what a check demands, where a reference comes from."""

from pathlib import Path

import click

from .answers import one_line_errors, own_references
from .arguments import REFERENCES
from .screen import console


@click.command()
@click.argument("name", metavar="METRIC|CHECK|REFERENCE")
@REFERENCES
@click.option("--json", "as_json", is_flag=True, help="Print the explanation as one JSON document on stdout.")
def explain(name: str, references: Path | None, as_json: bool) -> None:
    """Say what a metric means, what a check demands, or where a reference comes from."""
    with one_line_errors():
        from ..references import references_of
        from ..reports.explanation import show_explanation

        known = references_of(own_references(references))
        show_explanation(name, known, console(as_json), as_json=as_json)
