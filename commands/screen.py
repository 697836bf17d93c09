"""Where commands print for people, and how plainly."""

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console


def console(as_json: bool, *, quiet: bool = False, plain: bool = False) -> "Console":
    """Where people read: stdout, or stderr where a script reads stdout; nowhere where nobody does.

    Lines without colours or moving where that is asked for (`plain`, TERM=dumb), and under mpirun, whose terminal is
    none; FORCE_COLOR overrides the last. NO_COLOR takes the colours alone, as its convention has it.
    """
    from rich.console import Console

    class Patient(Console):
        def on_broken_pipe(self) -> None:
            """Whoever read has left: rich would exit with 1 here, in the middle of a run."""
            self.quiet = True

    lines = plain or _terminal_is_none(os.environ)
    return Patient(stderr=as_json, highlight=False, quiet=quiet, force_terminal=False if lines else None)


def _terminal_is_none(env: Mapping[str, str]) -> bool:
    """Whether what looks like a terminal moves no cursor, or is a launcher's, of which a log is made."""
    from ..cluster.mpi import by_mpirun

    if env.get("TERM", "").lower() in ("dumb", "unknown"):
        return True
    return by_mpirun(env) and not env.get("FORCE_COLOR")
