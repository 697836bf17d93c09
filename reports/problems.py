"""What `verify` shows: whether a run directory is whole and unaltered, and who signed it."""

import sys
from pathlib import Path

import msgspec
from rich.console import Console
from rich.table import Table

from ..evidence import Problem, Run, read_run
from ..evidence.signatures import Signature
from ..scoring import defects
from .plain_text import printable

_MOST_SHOWN = 50


def show_problems(
    path: Path, console: Console, signature: Signature, *, must_be_signed: bool = False, as_json: bool
) -> bool:
    """Show what is wrong with a run directory, and who signed it; returns whether anything is wrong: with
    `must_be_signed` also that nobody signed it. Raises RunError where it is none."""
    run = read_run(path)
    problems = [*run.problems, *defects(run)]
    unwanted = signature.state == "bad" or (must_be_signed and signature.state == "unsigned")
    if as_json:
        sys.stdout.write(_as_json(run, problems, signature) + "\n")
    if problems:
        console.print(_table(problems))
        console.print(f"{path}: {len(problems)} problems; a run with any cannot be signed", markup=False)
    else:
        console.print(f"{path}: whole; {run.last_number} records, all files as their checksums say", markup=False)
    console.print(_signed(signature), markup=False, soft_wrap=True)
    return bool(problems) or unwanted


def _signed(signature: Signature) -> str:
    if signature.state == "unsigned":
        return "not signed"
    if signature.state == "bad":
        return f"signature refused: {printable(signature.detail)}"
    if signature.state == "trusted":
        return f"signed by {printable(signature.signer, 200)}, {printable(signature.key, 200)}"
    key = printable(signature.key, 200)
    return f"signed with {key}; whose key that is, --allowed-signers FILE or --signer KEY.pub checks"


def _table(problems: list[Problem]) -> Table:
    table = Table("where", "what", "detail")
    for problem in problems[:_MOST_SHOWN]:
        table.add_row(printable(problem.place), problem.kind, printable(problem.detail))
    if len(problems) > _MOST_SHOWN:
        table.add_row("…", "", f"and {len(problems) - _MOST_SHOWN} more (--json has all)")
    return table


def _as_json(run: Run, problems: list[Problem], signature: Signature) -> str:
    document = {
        "run_id": run.header.run_id,
        "complete": not problems,
        "problems": problems,
        "signature": signature,
    }
    return msgspec.json.encode(document).decode()
