"""One recheck of a cluster at a time: two would measure each other."""

import contextlib
import fcntl
import hashlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from ..evidence import RunError


@contextlib.contextmanager
def alone(what: str) -> Iterator[None]:
    """Hold the lock of this name on this machine, for this user; the system drops it however the process ends.

    Raises RunError where another process holds it, or where the lock cannot be had.
    """
    name = hashlib.sha256(what.encode()).hexdigest()[:16]
    place = Path(tempfile.gettempdir()) / f"hwlottery-{os.getuid()}-{name}.lock"
    try:
        descriptor = os.open(place, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise RunError(f"cannot make the lock {place}: {error.strerror}") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise RunError(f"another recheck of {what} is under way here: wait for its end") from None
    finally:
        os.close(descriptor)
