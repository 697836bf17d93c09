"""What `explain` shows of a metric, a check or a reference."""

import sys

import msgspec
from rich.console import Console
from rich.text import Text

from ..references import References
from ..scoring.explain import explain


def show_explanation(name: str, known: References, console: Console, *, as_json: bool) -> None:
    """Show what a name stands for. Raises UnknownName, with the nearest names, where it stands for nothing."""
    explanation = explain(name, known)
    if as_json:
        sys.stdout.write(msgspec.json.encode(explanation).decode() + "\n")
    console.print(Text(explanation.title, "bold"))
    for line in explanation.lines:
        console.print(Text(f"  {line}"))
    if explanation.source:
        console.print(Text(f"  source: {explanation.source}", "dim"))
