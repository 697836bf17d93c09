"""A real Slurm on a lab: one controller on the head, one slurmd a host, munge between them."""

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .host import WITH_PARENT, Host, LabError, system

TOOLS = ("slurmctld", "slurmd", "sbatch", "srun", "munged")
_PATIENCE_S = 30.0


def missing_slurm() -> list[str]:
    """What Slurm needs and this machine lacks."""
    return [tool for tool in TOOLS if shutil.which(tool, path="/usr/sbin:/usr/bin") is None]


@contextmanager
def slurm_on(hosts: dict[str, Host], head: str, folder: Path) -> Iterator[dict[str, str]]:
    """Run Slurm on these hosts; the environment in which its commands find it. Ended when left."""
    place = folder / "slurm"
    (place / "state").mkdir(parents=True)
    conf = place / "slurm.conf"
    conf.write_text(_configuration(hosts, head, place))
    env = {**os.environ, "SLURM_CONF": str(conf)}
    daemons = [_munged(place), _started(["slurmctld", "-D"], env)]
    try:
        for host in hosts.values():
            (place / host.name).mkdir()
            host.serve("slurmd", "-D", "-N", host.name, env=env)
        _wait_until_idle(len(hosts), env)
        yield env
    finally:
        for host in hosts.values():
            host.kill("slurmd -D")
        for daemon in filter(None, reversed(daemons)):
            daemon.terminate()
            daemon.wait(timeout=20)


def _configuration(hosts: dict[str, Host], head: str, place: Path) -> str:
    settings = {
        "ClusterName": "lab",
        "SlurmctldHost": f"{socket.gethostname().split('.')[0]}({head})",
        "SlurmctldPort": str(_free_port(head)),
        "SlurmUser": "root",
        "SlurmdUser": "root",
        "AuthType": "auth/munge",
        "AuthInfo": f"socket={place / 'munge'}",
        "CryptoType": "crypto/munge",
        "ProctrackType": "proctrack/linuxproc",
        "TaskPlugin": "task/none",
        "ReturnToService": "2",
        "SlurmctldPidFile": str(place / "ctld.pid"),
        "SlurmdPidFile": str(place / "%n.pid"),
        "SlurmdSpoolDir": str(place / "%n"),
        "StateSaveLocation": str(place / "state"),
        "SlurmctldLogFile": str(place / "ctld.log"),
        "SlurmdLogFile": str(place / "%n.log"),
        "SelectType": "select/cons_tres",
        "SlurmdParameters": "config_overrides",
        "MpiDefault": "none",
        "PreemptType": "preempt/partition_prio",
        "PreemptMode": "CANCEL",
    }
    nodes = [
        f"NodeName={host.name} NodeHostname={host.name} NodeAddr={host.address} Port=16818 CPUs=2 RealMemory=2000"
        for host in hosts.values()
    ]
    lines = [f"{name}={value}" for name, value in settings.items()]
    # Whoever asks urgent for nodes takes them from jobs of main.
    partitions = [
        "PartitionName=main Nodes=ALL Default=YES PriorityTier=1 MaxTime=INFINITE State=UP",
        "PartitionName=urgent Nodes=ALL PriorityTier=2 MaxTime=INFINITE State=UP Hidden=YES",
    ]
    return "\n".join([*lines, *nodes, *partitions, ""])


def _munged(place: Path) -> "subprocess.Popen[bytes]":
    """A munge daemon of the lab's own, with its own key."""
    key = place / "munge.key"
    key.write_bytes(os.urandom(128))
    key.chmod(0o400)
    files = {"key-file": key, "socket": place / "munge", "pid-file": place / "munge.pid", "seed-file": place / "seed"}
    options = [f"--{name}={file}" for name, file in files.items()]
    return _started(["munged", "-F", "--force", f"--log-file={place / 'munge.log'}", *options], dict(os.environ))


def _started(command: list[str], env: dict[str, str]) -> "subprocess.Popen[bytes]":
    quiet = subprocess.DEVNULL
    path = f"/usr/sbin:{env.get('PATH', '')}"
    words = [*WITH_PARENT, *command]
    return subprocess.Popen(words, stdin=quiet, stdout=quiet, stderr=quiet, env={**env, "PATH": path})


def _wait_until_idle(count: int, env: dict[str, str]) -> None:
    until = time.monotonic() + _PATIENCE_S
    said = ""
    while time.monotonic() < until:
        try:
            said = system("sinfo", "--noheader", "--format=%D %t", env=env)
        except LabError as error:
            said = str(error)
        if said.split() == [str(count), "idle"]:
            return
        time.sleep(0.2)
    raise LabError(f"Slurm's nodes are not idle: {said}")


def _free_port(address: str) -> int:
    with socket.create_server((address, 0)) as server:
        return int(server.getsockname()[1])
