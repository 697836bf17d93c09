"""Reaching nodes by the user's own ssh: the command line, and what ssh knows of a host."""

import shlex
import subprocess
from collections.abc import Iterable
from itertools import islice

from msgspec import Struct

from ..evidence import RunError
from .network import address_towards

# Nothing may ask, for nobody answers; a host that does not answer, or that vanishes, ends its ssh.
_OPTIONS = {
    "BatchMode": "yes",
    "ConnectTimeout": "20",
    "ServerAliveInterval": "10",
    "ServerAliveCountMax": "3",
    "ForwardX11": "no",
    "ClearAllForwardings": "yes",
}
_ASKING_S = 20.0
_ASKED_FOR_ROUTE = 16  # where none of these resolves, hundreds more would only take minutes to say the same


class Ssh(Struct, frozen=True, kw_only=True):
    """How nodes are reached: the user's own arguments for ssh, and the command that is Python over there."""

    python: tuple[str, ...]
    arguments: tuple[str, ...] = ()

    def command(self, host: str, words: Iterable[str]) -> list[str]:
        """The command line that runs Python with these words on a host. The user's arguments win over ours."""
        options = [part for name, value in _OPTIONS.items() for part in ("-o", f"{name}={value}")]
        remote = shlex.join([*self.python, *words])  # ssh hands it to a shell
        return ["ssh", *self.arguments, *options, "-T", "--", host, remote]

    def hostname(self, host: str) -> str:
        """The name or address that ssh connects to for a host, by the user's configuration."""
        done = subprocess.run(
            ["ssh", "-G", *self.arguments, "--", host],
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=_ASKING_S,
            check=False,
        )
        named = [line.split(maxsplit=1)[1] for line in done.stdout.splitlines() if line.startswith("hostname ")]
        return named[0] if named else host


def make_ssh(arguments: str | None, python: str | None, own_python: str) -> Ssh:
    """From what the user gave: arguments as a shell would split them, and what is Python on the nodes."""
    try:
        return Ssh(arguments=tuple(shlex.split(arguments or "")), python=tuple(shlex.split(python or own_python)))
    except ValueError as error:
        raise RunError(f"--ssh or --remote-python: {error}") from None


def own_address(ssh: Ssh, hosts: tuple[str, ...]) -> str:
    """This machine's address on the route to the first of the hosts that has one, of some. Raises RunError."""
    why = ""
    for host in islice(hosts, _ASKED_FOR_ROUTE):
        try:
            return address_towards(ssh.hostname(host))
        except OSError as error:
            why = why or f"{host}: {error.strerror or error}"
        except subprocess.SubprocessError as error:
            why = why or f"{host}: {error}"
    tried = "any of the hosts" if len(hosts) <= _ASKED_FOR_ROUTE else f"any of the first {_ASKED_FOR_ROUTE} hosts"
    raise RunError(f"no route to {tried} ({why}): say with --listen at which address they reach this machine")
