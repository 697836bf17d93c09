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
        descriptor = _locked(place)
    except BlockingIOError:
        raise RunError(f"another recheck of {what} is under way here: wait for its end") from None
    except OSError as error:
        raise RunError(f"cannot make the lock {place}: {error.strerror}") from error
    try:
        yield
    finally:
        place.unlink(missing_ok=True)
        os.close(descriptor)


def _locked(place: Path) -> int:
    """The lock's file, locked, as it stands there: the one who held it before removes it, perhaps just after it was
    opened here, and then another one counts. Raises BlockingIOError where somebody holds it."""
    while True:
        descriptor = os.open(place, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(descriptor), place.lstat()):
                    return descriptor
        except OSError:
            os.close(descriptor)
            raise
        os.close(descriptor)
