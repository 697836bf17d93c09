"""explain: what a metric means, what a check demands, where a reference comes from."""

import click

from .answers import console, one_line_errors


@click.command()
@click.argument("name", metavar="METRIC|CHECK|REFERENCE")
@click.option("--json", "as_json", is_flag=True, help="Print the explanation as one JSON document on stdout.")
def explain(name: str, as_json: bool) -> None:
    """Say what a metric means, what a check demands, or where a reference comes from."""
    with one_line_errors():
        from ..reports.explanation import show_explanation

        show_explanation(name, console(as_json), as_json=as_json)
