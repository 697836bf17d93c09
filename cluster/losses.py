"""Why a node was lost: what its process, the ssh that leads to it, and its host tell once it no longer answers.

A cut cable and a killed worker both close a connection. At night somebody decides by these words whether to look for a
crash or for a cable, so they are asked apart: whether the process has ended and how, and whether the host still
answers at its worker's port.
"""

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import Callable
from datetime import UTC, datetime

from msgspec import Struct

_REACH_WITHIN_S = 5.0
_ENDED_WITHIN_S = 2.0  # after its connection closed; ssh hears of it as soon
_SSH_OWN = 255  # ssh's own trouble, and what it makes of a remote process that a signal ended
_SHELL_SIGNAL = 128  # a shell adds it to the number of the signal that ended its child


class Ending(Struct, frozen=True, kw_only=True):
    """How a started process ended: its exit code, negative for a signal, and its last line, if any."""

    code: int
    by_ssh: bool = False
    words: str = ""


class Departed(Struct, frozen=True, kw_only=True):
    """Where a node's worker listened, and when it was last heard of, in seconds since 1970."""

    address: str
    last_heard: float


async def why_lost(departed: Departed | None, ended: Callable[[], Ending | None], first: str = "") -> str:
    """In one line, why a node does not answer. `first`: what was seen of it, where that is more than a closed
    connection."""
    unreachable = await _unreachable(departed.address) if departed else ""
    ending = await _soon(ended)
    own = "" if ending is None else _own_end(ending)
    if own:
        return own
    if departed and unreachable:
        silent = datetime.fromtimestamp(departed.last_heard, UTC)
        return (
            f"no answer since {silent:%H:%M:%S} UTC ({unreachable}): network or power; its worker did not say why it "
            "ended"
        )
    here = "its host answers" if departed else ""
    return "; ".join(part for part in (first or _quietly(ending), here) if part)


def _own_end(ending: Ending) -> str:
    """How the worker itself ended, where its process tells."""
    if ending.by_ssh and ending.code == _SSH_OWN:
        return ""
    told = f"its worker ended{_with(ending.code)}"
    return f"{told}: {ending.words}" if ending.words and ending.code > 0 and not _signal_of(ending.code) else told


def _with(code: int) -> str:
    number = _signal_of(code)
    if not number:
        return f" with code {code}"
    name = ""
    with contextlib.suppress(ValueError):
        name = f" ({signal.Signals(number).name})"
    return f" by signal {number}{name}"


def _signal_of(code: int) -> int:
    return -code if code < 0 else max(0, code - _SHELL_SIGNAL) if code < _SSH_OWN else 0


def _quietly(ending: Ending | None) -> str:
    """A worker whose end nothing tells more of."""
    if ending is None:
        return "its worker ended, and nothing says how"
    return (
        f"its worker ended by a signal, or its ssh did (code {ending.code}{f': {ending.words}' * bool(ending.words)})"
    )


async def _soon(ended: Callable[[], Ending | None]) -> Ending | None:
    until = time.monotonic() + _ENDED_WITHIN_S
    while (found := ended()) is None and time.monotonic() < until:
        await asyncio.sleep(0.05)
    return found


async def _unreachable(address: str) -> str:
    """Why the host does not answer at its worker's port; empty where it does, be it by refusing."""
    host, _, port = address.rpartition("://")[2].rpartition(":")
    try:
        _, writer = await asyncio.wait_for(asyncio.open_connection(host.strip("[]"), int(port)), _REACH_WITHIN_S)
    except TimeoutError:
        return "connection timed out"
    except (ConnectionRefusedError, ConnectionResetError):
        return ""
    except (OSError, ValueError) as error:
        number = error.errno if isinstance(error, OSError) else None
        return os.strerror(number).lower() if number else str(error)[:100]
    writer.close()
    return ""
