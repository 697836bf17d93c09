"""A real sshd on each host, with its own host key, and an ssh config file that finds the hosts by their names."""

import shutil
import socket
import time
from pathlib import Path

from .host import Host, LabError, system

_PATIENCE_S = 10.0


def write_client_config(hosts: list[Host], folder: Path) -> None:
    """Make a key pair, and the config file `ssh -F` reads: host keys are known, nothing is asked."""
    system("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / "key")
    known = []
    blocks = []
    for host in hosts:
        system("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / f"host-{host.name}")
        known.append(f"{host.address} {(folder / f'host-{host.name}.pub').read_text().strip()}")
        blocks.append(f"Host {host.name}\n  HostName {host.address}\n")
    (folder / "known_hosts").write_text("\n".join(known) + "\n")
    everyone = [
        "User root",
        f"IdentityFile {folder / 'key'}",
        "IdentitiesOnly yes",
        f"UserKnownHostsFile {folder / 'known_hosts'}",
        "StrictHostKeyChecking yes",
        "LogLevel ERROR",
    ]
    (folder / "config").write_text("".join(blocks) + "Host *\n" + "".join(f"  {line}\n" for line in everyone))


def serve_ssh(host: Host, folder: Path, env: dict[str, str]) -> None:
    """Start the host's sshd; `env` is what each session finds in its environment."""
    settings = {
        "ListenAddress": host.address,
        "HostKey": folder / f"host-{host.name}",
        "AuthorizedKeysFile": folder / "key.pub",
        "StrictModes": "no",
        "UsePAM": "no",
        "PermitRootLogin": "prohibit-password",
        "PidFile": "none",
        "SetEnv": " ".join(f'"{name}={value}"' for name, value in env.items()),
    }
    file = folder / f"sshd-{host.name}"
    file.write_text("".join(f"{name} {value}\n" for name, value in settings.items()))
    program = shutil.which("sshd", path="/usr/sbin:/usr/local/sbin:/usr/bin")
    if program is None:
        raise LabError("no sshd here")
    Path("/run/sshd").mkdir(exist_ok=True)  # sshd's own condition for starting
    host.serve(program, "-D", "-e", "-f", file)
    _wait_for_port(host.address, 22)


def _wait_for_port(address: str, port: int) -> None:
    until = time.monotonic() + _PATIENCE_S
    while True:
        try:
            socket.create_connection((address, port), timeout=1).close()
            return
        except OSError as error:
            if time.monotonic() > until:
                raise LabError(f"no answer on {address}:{port}: {error}") from error
            time.sleep(0.05)
