"""What `doctor` shows: each thing looked at, and for a problem what to do."""

import sys
from collections.abc import Sequence

import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from .doctor import Advice

_STYLES = {"ok": "green", "problem": "bold red", "note": "yellow"}


def show_advice(advice: Sequence[Advice], console: Console, *, as_json: bool) -> bool:
    """Show what was found; returns whether any of it is a problem."""
    if as_json:
        sys.stdout.write(msgspec.json.encode(advice).decode() + "\n")
    table = Table("", "what", "found", "what to do", box=None, pad_edge=False)
    for item in advice:
        table.add_row(Text(item.state, _STYLES[item.state]), Text(item.name), Text(item.detail), Text(item.remedy))
    console.print(table)
    problems = sum(item.state == "problem" for item in advice)
    console.print(
        f"{problems} problem{'' if problems == 1 else 's'} found" if problems else "nothing keeps a run from working"
    )
    return problems > 0
