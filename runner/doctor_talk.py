"""doctor's conversation with one host, over ssh: what runs there answers a question a line."""

import contextlib
import json
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

from ..cluster.clocks import ClockReading, ask
from ..cluster.ssh import Ssh

_SCRIPT = Path(__file__).with_name("doctor_remote.py")
_ANSWER_WITHIN_S = 60.0
_PORT_WITHIN_S = 5.0
_LONGEST_LINE = 1 << 20  # a few hundred bytes for each other host
_TEXTS = ("to_head", "address", "scratch", "hwlottery", "torch", "python")


class Look:
    """What was found of one host. `failed` is why nothing could be asked of it; `from_head` why no port of it was
    reached from here; `unreached` which other hosts it does not reach. Use as a context manager: it ends when left."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.failed = ""
        self.found: dict[str, Any] = {}
        self.from_head = ""
        self.clock: ClockReading | None = None
        self.unreached: dict[str, str] = {}
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> "Look":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if self._process is not None:
            if self.failed:
                self._process.kill()
            with contextlib.suppress(OSError), self._in_time(), self._process:
                pass  # its stdin is closed, which ends it

    def begin(self, ssh: Ssh, head: tuple[str, int], scratch: Path) -> "Look":
        """Start what answers there, and hear what it found."""
        words = ["-c", _SCRIPT.read_text("utf-8"), head[0], str(head[1]), str(scratch)]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(
            ssh.command(self.name, words),
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        with self._in_time():
            with contextlib.suppress(OSError, ValueError):  # it ended, or said what is no answer of ours
                self.found = _of_ours(self._line())
            if not self.found:
                self.failed = self._last_words() or f"no answer within {_ANSWER_WITHIN_S:.0f} s"
                return self
        self.from_head = _reached(ssh.hostname(self.name), int(self.found["port"]))
        with contextlib.suppress(OSError, ValueError):
            self.clock = ask(lambda: float(self._answer("clock")))
        return self

    def ask_reach(self, others: "list[Look]") -> None:
        """Have it connect to each of the others once. It begins with the one after it, so that not all call on the
        same host at once."""
        after = others.index(self) + 1
        peers = [[one.name, one.found["address"], one.found["port"]] for one in others[after:] + others[: after - 1]]
        answer = self.ask("reach", peers=peers)
        self.unreached = (
            answer if isinstance(answer, dict) else {one.name: "no answer" for one in others if one != self}
        )

    def ask(self, what: str, **more: Any) -> Any:
        """The answer to a question; None where none comes in time."""
        with contextlib.suppress(OSError, ValueError):
            return self._answer(what, **more)
        return None

    def _answer(self, what: str, **more: Any) -> Any:
        assert self._process is not None
        assert self._process.stdin is not None
        with self._in_time():
            self._process.stdin.write(json.dumps({"ask": what, **more}) + "\n")
            self._process.stdin.flush()
            return self._line()

    def _line(self) -> Any:
        assert self._process is not None
        assert self._process.stdout is not None
        return json.loads(self._process.stdout.readline(_LONGEST_LINE))

    @contextlib.contextmanager
    def _in_time(self) -> Iterator[None]:
        assert self._process is not None
        late = threading.Timer(_ANSWER_WITHIN_S, self._process.kill)
        late.start()
        try:
            yield
        finally:
            late.cancel()

    def _last_words(self) -> str:
        assert self._process is not None
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self._process.stdout.close()  # whoever prints without end ends by that
        lines = self._process.stderr.read(_LONGEST_LINE).strip().splitlines()
        return lines[-1][:300] if lines else ""


def _of_ours(found: Any) -> dict[str, Any]:
    """What was found, where it is what our own script says. Raises ValueError for anything else."""
    if not isinstance(found, dict) or not all(isinstance(found.get(name), str) for name in _TEXTS):
        raise ValueError("no answer of ours")
    if not isinstance(found.get("port"), int) or not 0 < found["port"] < 1 << 16:
        raise ValueError("no port")
    return found


def _reached(address: str, port: int) -> str:
    """Why a port cannot be reached from here; empty where it can."""
    try:
        socket.create_connection((address, port), timeout=_PORT_WITHIN_S).close()
    except OSError as error:
        return str(error)
    return ""
