"""Writing much to a process that may stop reading: to the ssh that takes a bundle to a node."""

import os
import select
import subprocess
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from .bundle import Bundle

_TAKES_NOTHING_FOR_S = 60.0
_CHUNK = 1 << 20


def push(process: "subprocess.Popen[bytes]", file: Path | None, then: bytes) -> None:
    """Write a file, if any, and what follows it to a process's stdin, and close it.

    A process that has ended, or takes nothing for a minute and is then killed, gets no more: what it said tells why.
    """
    assert process.stdin is not None
    with process.stdin as stdin:
        os.set_blocking(stdin.fileno(), False)
        for chunk in chain(_chunks(file), [then]):
            if not _written(process, stdin.fileno(), chunk):
                return


def _chunks(file: Path | None) -> Iterator[bytes]:
    if file is not None:
        with file.open("rb") as source:
            while chunk := source.read(_CHUNK):
                yield chunk


def _written(process: "subprocess.Popen[bytes]", descriptor: int, content: bytes) -> bool:
    room = select.poll()
    room.register(descriptor, select.POLLOUT)
    left = memoryview(content)
    while left:
        if not room.poll(_TAKES_NOTHING_FOR_S * 1000):
            process.kill()
            return False
        try:
            left = left[os.write(descriptor, left) :]
        except BlockingIOError:
            continue
        except BrokenPipeError:
            return False
    return True


def push_words(bundle: Bundle) -> list[str]:
    """The words by which a Python takes in a bundle that comes on its stdin; the command to run follows them."""
    source = Path(__file__).with_name("bundle_main.py").read_text("utf-8")
    found = bundle.manifest
    return ["-c", source, "receive", str(bundle.size), bundle.sha256, found.python, found.platform]
