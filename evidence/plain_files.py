"""Small files that may be anybody's: a plain file, read up to a limit, no link followed, no pipe waited for."""

import os
import stat
from pathlib import Path

_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class NotPlain(ValueError):
    """No plain file, or more of it than is read; the message says which, without the file's name."""


def must_be_plain(file: Path) -> None:
    """Raises NotPlain for a pipe, a device, a socket or a folder, which one could wait for or read for ever; OSError
    where there is nothing. A link is followed: this is for files that a user names."""
    if not stat.S_ISREG(file.stat().st_mode):
        raise NotPlain("no plain file: not read")


def small_file(file: Path, most: int) -> bytes:
    """The bytes of a plain file. Raises NotPlain for what is none or over `most` bytes, OSError for one that cannot
    be read (FileNotFoundError where there is none)."""
    if file.is_symlink():
        raise NotPlain("a link: not followed")
    if stat.S_ISSOCK(file.lstat().st_mode):  # which cannot even be opened
        raise NotPlain("no plain file: not read")
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
