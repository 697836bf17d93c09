"""Where a rank was when its deadline passed: its Python stack, asked for by a signal and read from its log.

A rank that hangs and its peers that wait for it in a collective look alike to the kernel. Their stacks tell them
apart. The dump is faulthandler's: it works in C, so also while something else holds the GIL.
"""

import contextlib
import faulthandler
import os
import re
import signal
import time
from pathlib import Path

SIGNAL = signal.SIGUSR1
WAITING = "waiting for the others"
AT = "at "  # what an answer begins with that names a place in a rank's own work
_STDERR = 2  # the descriptor, which each trial points at its own log
_DUMPED_WITHIN_S = 0.5
# As faulthandler prints a frame: File "/x/y.py", line 3 in function
_FRAME = re.compile(r'^  File "(?P<file>[^"]+)", line (?P<line>\d+) in (?P<function>\S+)', re.MULTILINE)
# Where a rank is while it waits for its peers: inside a collective, or in the rendezvous before it.
_COLLECTIVE = "torch/distributed/distributed_c10d.py"
_MEETING = "cluster/rank_process.py"
# Gradients are reduced within backward: from the stack it cannot be told whether it computes or waits.
_UNDECIDED = "torch/autograd/graph.py"
_TOP = 3
_LARGEST_DUMP = 1 << 20
# A note on an exception that was raised inside a collective; it travels with it from the rank to its node.
IN_COLLECTIVE = "raised inside a collective"


def answer_in_log() -> None:
    """In a rank: print the stack on stderr when the signal comes."""
    faulthandler.register(SIGNAL, file=_STDERR, all_threads=True, chain=False)


def where(pid: int, log: Path) -> str:
    """What a rank is doing: WAITING, "at FILE:LINE FUNCTION", or "" where it cannot be told. Waits half a second."""
    before = _size(log)
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, SIGNAL)
    until = time.monotonic() + _DUMPED_WITHIN_S
    text, last = "", None
    while time.monotonic() < until and (not text or text != last):
        time.sleep(0.02)
        text, last = _after(log, before), text
    return told(text)


def told(dump: str) -> str:
    """What a dump says of the main thread, which stands last in it."""
    stack = list(_FRAME.finditer(re.split(r"^(?:Current thread|Thread) ", dump, flags=re.MULTILINE)[-1]))
    if not stack:
        return ""
    top = [frame["file"] for frame in stack[:_TOP]]
    if any(file.endswith(_COLLECTIVE) for file in top) or top[0].endswith(_MEETING):
        return WAITING
    if any(file.endswith(_UNDECIDED) for file in top):
        return ""
    first = stack[0]
    return f"{AT}{Path(first['file']).name}:{first['line']} {first['function']}"


def in_collective(error: BaseException) -> bool:
    """Whether an exception was raised inside a collective: it may only follow from what befell a peer."""
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename.endswith(_COLLECTIVE):
            return True
        trace = trace.tb_next
    return False


def _size(log: Path) -> int:
    try:
        return log.stat().st_size
    except OSError:
        return 0


def _after(log: Path, start: int) -> str:
    try:
        with log.open("rb") as opened:
            opened.seek(start)
            return opened.read(_LARGEST_DUMP).decode("utf-8", "replace")
    except OSError:
        return ""
