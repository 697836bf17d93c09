"""What `verify` shows: whether a run directory is whole and unaltered."""

import sys
from pathlib import Path

import msgspec
from rich.console import Console
from rich.table import Table

from ..evidence import Problem, Run, read_run
from ..scoring import defects
from .plain_text import printable

_MOST_SHOWN = 50


def show_problems(path: Path, console: Console, *, as_json: bool) -> bool:
    """Show what is wrong with a run directory; returns whether anything is. Raises RunError where it is none."""
    run = read_run(path)
    problems = [*run.problems, *defects(run)]
    if as_json:
        sys.stdout.write(_as_json(run, problems) + "\n")
    if not problems:
        console.print(f"{path}: whole; {run.last_number} records, all files as their checksums say", markup=False)
        return False
    console.print(_table(problems))
    console.print(f"{path}: {len(problems)} problems; a run with any cannot be signed", markup=False)
    return True


def _table(problems: list[Problem]) -> Table:
    table = Table("where", "what", "detail")
    for problem in problems[:_MOST_SHOWN]:
        table.add_row(printable(problem.place), problem.kind, printable(problem.detail))
    if len(problems) > _MOST_SHOWN:
        table.add_row("…", "", f"and {len(problems) - _MOST_SHOWN} more (--json has all)")
    return table


def _as_json(run: Run, problems: list[Problem]) -> str:
    document = {"run_id": run.header.run_id, "complete": not problems, "problems": problems}
    return msgspec.json.encode(document).decode()
