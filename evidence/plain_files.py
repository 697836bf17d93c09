"""Small files that may be anybody's: a plain file, read up to a limit, no link followed, no pipe waited for."""

import os
import stat
from pathlib import Path

_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class NotPlain(ValueError):
    """No plain file, or more of it than is read; the message says which, without the file's name."""


def small_file(file: Path, most: int) -> bytes:
    """The bytes of a plain file. Raises NotPlain for what is none or over `most` bytes, OSError for one that cannot
    be read (FileNotFoundError where there is none)."""
    if file.is_symlink():
        raise NotPlain("a link: not followed")
    opened = os.open(file, _READ)
    try:
        if not stat.S_ISREG(os.fstat(opened).st_mode):
            raise NotPlain("no plain file: not read")
        with os.fdopen(os.dup(opened), "rb") as content:
            found = content.read(most + 1)
    finally:
        os.close(opened)
    if len(found) > most:
        raise NotPlain(f"over {most >> 10} KiB: not read")
    return found
