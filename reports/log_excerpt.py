"""The last lines of the logs that a finding's trials left in the run directory.

A run directory may come from anyone: only plain files directly in its folder logs/ are read, no link is followed, and
no more than the end of each.
"""

import os
import re
import stat
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from .plain_text import natural, printable, printable_lines

LAST_BYTES = 16 * 2**10
MOST_LINES = 20
LONGEST_LINE = 300
_COLOURS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # a pipe must not make the report wait


class Excerpt(Struct, frozen=True, kw_only=True):
    """The end of a log: its name in the run directory, its last lines, and whether there is more before them."""

    name: str
    text: str
    cut: bool


def log_names(run: Path, prefixes: Sequence[str]) -> list[str]:
    """The names of the logs that begin with one of the prefixes (trial ids), in natural order."""
    if not prefixes:
        return []
    try:
        folder = os.open(run / "logs", _FOLDER)
    except OSError:
        return []
    try:
        names = os.listdir(folder)  # noqa: PTH208  # of the opened folder: a path could be a link by now
    finally:
        os.close(folder)
    return sorted((name for name in names if name.startswith(tuple(prefixes)) and name.endswith(".log")), key=natural)


def excerpt(run: Path, name: str) -> Excerpt | None:
    """The last lines of a log; None where it is no plain file, cannot be read or holds nothing."""
    content = _end_of(run / "logs", name)
    if content is None:
        return None
    end, size = content
    lines = [line for line in printable_lines(_COLOURS.sub("", end), LAST_BYTES).split("\n") if line.strip()]
    if not lines:
        return None
    shown = [printable(line, LONGEST_LINE) for line in lines[-MOST_LINES:]]
    cut = len(lines) > MOST_LINES or size > LAST_BYTES
    return Excerpt(name=f"logs/{printable(name, 200)}", text="\n".join(shown), cut=cut)


def _end_of(logs: Path, name: str) -> tuple[str, int] | None:
    """The end of a plain file in the folder, and the size of the file."""
    if "/" in name:
        return None
    try:
        folder = os.open(logs, _FOLDER)
    except OSError:
        return None
    try:
        opened = os.open(name, _FILE, dir_fd=folder)
    except OSError:
        return None
    finally:
        os.close(folder)
    try:
        kind = os.fstat(opened)
        if not stat.S_ISREG(kind.st_mode):
            return None
        content = os.pread(opened, LAST_BYTES, max(0, kind.st_size - LAST_BYTES))
    except OSError:
        return None
    finally:
        os.close(opened)
    return content.decode("utf-8", "replace"), kind.st_size
