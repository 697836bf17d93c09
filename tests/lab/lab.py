"""A cluster on one machine: N hosts on a bridge, reached by their names over a real ssh.

The head is this machine; it has the bridge's address. Needs root, and iproute2, nftables, util-linux, procps,
openssh-server and openssh-client. Names, bridge, subnet and ports are made for each lab, so that two can stand side
by side. A lab ends with the process that made it, even where that one is killed.
"""

import contextlib
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from .cables import HEALTHY_MBIT, Cables
from .host import Host, LabError, system
from .slurm import slurm_on
from .sshd import serve_ssh, write_client_config

__all__ = ["HEALTHY_MBIT", "Host", "Lab", "LabError"]

ROOT = Path(__file__).resolve().parents[2]
TOOLS = ("ip", "tc", "nft", "unshare", "nsenter", "setpriv", "pgrep", "ssh", "ssh-keygen", "sshd")
# Inherited by all that a host's sshd and slurmd start.
_REAL_TIME = ("chrt", "--rr", "1")
# Waits for the end of the lab's process, then removes what has no process of its own: the bridge and the folder. What
# ends at the same moment may still write, so it looks twice.
_AFTERWARDS = 'read -r; ip link del "$1"; rm -rf "$2" || { sleep 1; rm -rf "$2"; }'


class Lab:
    """Use as a context manager: however it is left, all that was started is ended."""

    def __init__(
        self,
        hosts: int = 4,
        *,
        mbit: float = HEALTHY_MBIT,
        first: bool = False,
        env: dict[str, str] | None = None,
    ) -> None:
        """`mbit` is the rate of a healthy cable. `first`: what runs on the hosts comes before all else on this machine,
        where it lets us, as on a host with cores of its own: for measuring, not for what computes without a pause.
        `env` is what every ssh session finds in its environment, beside where hwlottery lies."""
        self._count = hosts
        self._before = _REAL_TIME if first and _allowed(_REAL_TIME) else ()
        self._mbit = mbit
        self._env = {"PYTHONPATH": f"{ROOT / '.src'}:{ROOT / 'tests'}", **(env or {})}
        self._stack = ExitStack()
        self.hosts: dict[str, Host] = {}

    def __enter__(self) -> Self:
        missing = missing_tools()
        if missing:
            raise LabError(f"the lab needs root and {', '.join(missing)}")
        with ExitStack() as stack:
            self._build(stack)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._stack.close()

    @property
    def names(self) -> str:
        """All hosts as a node set."""
        return f"node[1-{self._count}]"

    @property
    def bridge(self) -> str:
        """The interface that connects the hosts."""
        return self._cables.bridge

    @property
    def head(self) -> str:
        """The address of this machine in the lab."""
        return self._cables.head

    @property
    def ssh(self) -> str:
        """The arguments by which ssh finds the lab's hosts."""
        return f"-F {self.folder / 'config'}"

    def slurm(self) -> AbstractContextManager[dict[str, str]]:
        """A real Slurm on all hosts, for as long as the context is open: the environment of its commands."""
        return slurm_on(self.hosts, self.head, self.folder)

    def set_env(self, name: str, **env: str) -> None:
        """Give one host's ssh sessions more environment from now on. Its sshd starts again."""
        host = self.hosts[name]
        host.kill("sshd: .*listener")
        serve_ssh(host, self.folder, {**self._env, **env})

    def shape(self, name: str, mbit: float) -> None:
        """Give both directions of a host's cable a rate."""
        self._cables.shape(self._number(name), self.hosts[name], mbit)

    def slow_pair(self, one: str, other: str, mbit: float) -> None:
        """Make only the traffic between two hosts slow."""
        self._cables.slow_pair(self.hosts[one], self.hosts[other], mbit)

    def lose(self, name: str, percent: int) -> None:
        """Drop this share of the packets that reach a host."""
        self._cables.lose(self.hosts[name], percent)

    def cut(self, name: str) -> None:
        """Pull a host's cable."""
        self._cables.cut(self._number(name))

    def heal(self) -> None:
        """Make every cable healthy, and wait for what a cut has left behind to end."""
        for number, host in enumerate(self.hosts.values(), start=1):
            self._cables.heal(number, host)

    def _number(self, name: str) -> int:
        return list(self.hosts).index(name) + 1

    def _build(self, stack: ExitStack) -> None:
        mark, net = secrets.token_hex(2), _free_net()
        # Not below /tmp: each host has its own there, and sshd reads its keys from here.
        self.folder = Path(tempfile.mkdtemp(prefix=f"hwl-lab-{mark}-", dir="/var/tmp"))
        stack.callback(_end, _remover(f"hb{mark}", self.folder))
        self._cables = Cables(mark, net, self._mbit)
        for number in range(1, self._count + 1):
            host = Host(f"node{number}", f"{net}.{number}", self._before)
            stack.callback(host.end)
            self.hosts[host.name] = host
            self._cables.plug(number, host)
        write_client_config(list(self.hosts.values()), self.folder)
        for host in self.hosts.values():
            serve_ssh(host, self.folder, self._env)


def _allowed(prefix: tuple[str, ...]) -> bool:
    with contextlib.suppress(LabError, OSError):
        system(*prefix, "true")
        return True
    return False


def _remover(bridge: str, folder: Path) -> "subprocess.Popen[bytes]":
    """The process that removes bridge and folder when its stdin is closed, by us or by our end."""
    quiet = subprocess.DEVNULL
    command = ["bash", "-c", _AFTERWARDS, "remover", bridge, str(folder)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=quiet, stderr=quiet, start_new_session=True)


def _end(remover: "subprocess.Popen[bytes]") -> None:
    assert remover.stdin is not None
    remover.stdin.close()
    remover.wait(timeout=20)


def missing_tools() -> list[str]:
    """What the lab needs and this machine lacks."""
    missing = [] if os.geteuid() == 0 else ["root"]
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    return missing + [tool for tool in TOOLS if shutil.which(tool, path=path) is None]


def _free_net() -> str:
    """A /24 that no route of this machine leads to."""
    routes = system("ip", "-4", "route")
    while True:
        net = f"10.{200 + secrets.randbelow(50)}.{secrets.randbelow(256)}"
        if f"{net}." not in routes:
            return net


def wait_until(true: object, within_s: float, what: str) -> None:
    """Wait until a condition holds. Raises AssertionError with what did not come."""
    assert callable(true)
    until = time.monotonic() + within_s
    while not true():
        if time.monotonic() > until:
            raise AssertionError(f"not within {within_s:.0f} s: {what}")
        time.sleep(0.1)


PYTHON = sys.executable
