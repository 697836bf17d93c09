"""One host of the lab: its own network, name, mounts, processes and /tmp, held by one process.

All that was started on a host ends with that holder: the kernel kills a PID namespace as one. The holder ends with the
process that made it, even where that one is killed.
"""

import contextlib
import os
import shlex
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

# PID 1 of the host: it reaps what its parents left behind, as init does.
_INIT = (
    "mount -t tmpfs tmpfs /tmp && chmod 1777 /tmp && hostname {name} && echo ready; while :; do sleep 600 & wait; done"
)
# The kernel kills what is started so when the thread that started it ends, however it ends.
WITH_PARENT = ("setpriv", "--pdeathsig", "KILL", "--")
_NAMESPACES = ("--net", "--uts", "--mount", "--pid", "--fork", "--kill-child=SIGKILL", "--mount-proc")


class LabError(Exception):
    """The lab could not be made or changed; the message names the command and what it said."""


def system(*command: str | Path, stdin: str | None = None, env: dict[str, str] | None = None) -> str:
    """Run a system command and return what it printed. Raises LabError."""
    words = [str(word) for word in command]
    done = subprocess.run(words, input=stdin, capture_output=True, text=True, check=False, timeout=30, env=env)
    if done.returncode:
        raise LabError(f"{shlex.join(words)}: {done.stderr.strip() or f'exit {done.returncode}'}")
    return done.stdout


class Host:
    """A host that is up. `name` is its hostname, `address` that of its eth0."""

    def __init__(self, name: str, address: str, before: Sequence[str] = ()) -> None:
        """`before` stands before the command of whatever serves on this host."""
        self.name = name
        self._before = before
        self.address = address
        self.pid: int | None = None
        self._services: list[subprocess.Popen[bytes]] = []
        self._holder = subprocess.Popen(
            [*WITH_PARENT, "unshare", *_NAMESPACES, "bash", "-c", _INIT.format(name=name)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        assert self._holder.stdout is not None
        if self._holder.stdout.readline() != b"ready\n":
            self.end()
            raise LabError(f"{name} did not start: unshare needs root")
        (self.pid,) = (int(pid) for pid in _children(self._holder.pid))

    def inside(self, *command: str | Path) -> list[str]:
        """The command line that runs a command on this host."""
        return ["nsenter", "--target", str(self.pid), "--net", "--uts", "--mount", "--pid", "--", *map(str, command)]

    def run(self, *command: str | Path, stdin: str | None = None) -> str:
        """Run a command on this host; what it printed. Raises LabError."""
        return system(*self.inside(*command), stdin=stdin)

    def serve(self, *command: str | Path, env: dict[str, str] | None = None) -> None:
        """Start what serves for as long as the host is up."""
        quiet = subprocess.DEVNULL
        words = [*self._before, *self.inside(*command)]
        self._services.append(subprocess.Popen(words, stdin=quiet, stdout=quiet, stderr=quiet, env=env))

    def processes(self, words: str) -> list[int]:
        """Processes of this host, by its own numbers, whose command line has these words in it."""
        with contextlib.suppress(LabError):
            return [int(pid) for pid in self.run("pgrep", "-f", words).split()]
        return []

    def kill(self, words: str, name: str = "KILL") -> None:
        """Send a signal to the processes of this host, and of no other, with these words in their command line."""
        for pid in self.processes(words):
            with contextlib.suppress(LabError):
                self.run("kill", f"-{name}", str(pid))

    def end(self) -> None:
        """End the host and everything on it."""
        if self.pid is None:
            self._holder.kill()
        else:
            os.kill(self.pid, signal.SIGKILL)  # PID 1 of the host: all its processes go with it
        for process in (self._holder, *self._services):
            process.wait()
        if self._holder.stdout:
            self._holder.stdout.close()


def _children(pid: int) -> Sequence[str]:
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
