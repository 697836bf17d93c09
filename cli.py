"""The command line: `hwlottery COMMAND`. A command's own file in commands/ holds its options and wiring."""

import contextlib
import io
import os
import sys
from pathlib import Path
from typing import NoReturn, TextIO

import click

from . import __version__
from .commands.annex import annex
from .commands.arguments import EXIT_CODES
from .commands.bundle import bundle
from .commands.compare import compare
from .commands.doctor import doctor
from .commands.explain import explain
from .commands.export import export
from .commands.history import history
from .commands.launch import launch
from .commands.recheck import recheck
from .commands.report import report
from .commands.run import run
from .commands.score import score
from .commands.sign import sign
from .commands.usage import Commands
from .commands.verify import verify

COMMANDS = (
    run, recheck, history, score, report, compare, sign, verify, doctor, explain, export, annex, launch, bundle
)  # fmt: skip


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]}, epilog=EXIT_CODES)
@click.version_option(__version__, prog_name="hwlottery")
def cli() -> None:
    """Measure a rented GPU cluster, name what to swap, and decide GO or NO-GO with the evidence."""


for _command in COMMANDS:
    cli.add_command(_command)


def _speakable(stream: TextIO | None) -> TextIO:
    """A stream that takes any text: a closed one swallows it, one of a small character set replaces what it lacks."""
    if stream is None:
        return Path(os.devnull).open("w")  # open until the process ends
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="replace")
    return stream


def main() -> NoReturn:
    """Run the command and end. Not by returning: a rank stuck in the kernel would block Python's exit."""
    sys.stdout, sys.stderr = (_speakable(stream) for stream in (sys.stdout, sys.stderr))
    try:
        cli(prog_name="hwlottery")
        code: object = 0
    except SystemExit as end:
        code = end.code
    with contextlib.suppress(OSError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code if isinstance(code, int) else 1)
