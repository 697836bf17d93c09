"""The processes of the node workers that the head has started, here or by ssh: their summons, last words and end."""

import contextlib
import os
import resource
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import msgspec

from .bounded_log import BoundedLog, Logs
from .bundle import Bundle
from .losses import Ending
from .node_main import Summons
from .pushing import push, push_words
from .ssh import Ssh

_END_WITHIN_S = 8.0
_WORKER = ("-m", "hwlottery.cluster.node_main")
# A node's worker ends without Python's own shutdown; its resource tracker would complain of that in the log.
_QUIET = {"PYTHONWARNINGS": "ignore:resource_tracker:UserWarning"}
# What a user sets for the collectives at the head is meant for the nodes.
_CARRIED = ("NCCL_", "GLOO_", "TORCH_NCCL_")


def attend(summons: Summons) -> None:
    """Be the node of a summons until its head ends: a worker in a process of its own, which prints where this does."""
    subprocess.run(
        [sys.executable, *_WORKER], input=msgspec.json.encode(summons), env={**os.environ, **_QUIET}, check=False
    )


class Workers:
    """Node workers as processes of the head: its own children, or the ssh that leads to them."""

    def __init__(self, open_files: tuple[int, int]) -> None:
        """`open_files`: how many each may have at first and at most, whatever the head has given itself since."""
        self._open_files = open_files
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._logs: dict[str, BoundedLog] = {}
        self._printed = Logs()
        self._by_ssh: set[str] = set()

    def start_local(self, summons: Summons, log: Path) -> None:
        """Start this machine's worker. It is told over stdin what to be, and prints to `log`."""
        self._start([sys.executable, *_WORKER], summons, log, {**os.environ, **_QUIET})

    def start_by_ssh(self, summons: Summons, ssh: Ssh, log: Path, bundle: Bundle | None = None) -> None:
        """Start a worker on the host of its node's name, with the same summons over ssh's stdin.

        With a bundle, that goes before it, and this waits until the node has it; several threads may do so at once.
        """
        carried = {name: value for name, value in os.environ.items() if name.startswith(_CARRIED)}
        summons = msgspec.structs.replace(summons, env={**carried, **_QUIET})
        self._by_ssh.add(summons.node.name)
        words = [*push_words(bundle), *_WORKER] if bundle else _WORKER
        self._start(ssh.command(summons.node.name, words), summons, log, None, first=bundle.path if bundle else None)

    def ended(self, name: str) -> bool:
        """Whether a worker that was started has ended."""
        return name in self._processes and self._processes[name].poll() is not None

    def last_words(self, name: str) -> str:
        """The last line that a worker, or the ssh that was to start it, printed where it has ended; else nothing."""
        if not self.ended(name):
            return ""
        said = self._last_line(name)
        return _with_remedy(said) if said else "its worker ended at once"

    def ending(self, name: str) -> Ending | None:
        """How a worker that was started here, or the ssh that leads to it, has ended; None where it has not, or where
        somebody else has started it."""
        code = self._processes[name].poll() if name in self._processes else None
        if code is None:
            return None
        return Ending(code=code, by_ssh=name in self._by_ssh, words=self._last_line(name))

    def _last_line(self, name: str) -> str:
        return self._printed.last_line(self._logs[name])[:300]

    def end(self) -> None:
        """Wait a few seconds for all to end, as their scheduler has told them to, then kill the rest."""
        until = time.monotonic() + _END_WITHIN_S
        for process in self._processes.values():
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=max(0.0, until - time.monotonic()))
                continue
            process.kill()  # its ranks die with it
        self._printed.close()

    def _start(
        self,
        command: list[str],
        summons: Summons,
        log: Path,
        env: Mapping[str, str] | None,
        first: Path | None = None,
    ) -> None:
        kept, out = self._printed.open(log)
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=out,
                stderr=out,
                env=env,
                start_new_session=True,  # a Ctrl-C at the terminal is for the head, which ends the nodes in order
            )
        finally:
            os.close(out)
        self._logs[summons.node.name] = kept
        self._processes[summons.node.name] = process
        with contextlib.suppress(ProcessLookupError, PermissionError):
            resource.prlimit(process.pid, resource.RLIMIT_NOFILE, self._open_files)
        push(process, first, msgspec.json.encode(summons))


def _with_remedy(said: str) -> str:
    """What a node said last, and what to do where it lacks our packages."""
    return f"{said} (run --bundle auto brings what is missing)" if "No module named" in said else said
