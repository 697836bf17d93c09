"""doctor's look at other hosts: ssh, software, ports both ways, clocks and scratch, each with its remedy."""

import contextlib
import json
import socket
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from ..cluster.clocks import ClockReading, ask, offsets
from ..cluster.node_main import own_software, unlike
from ..cluster.ssh import Ssh, node_set
from .advice import Advice, ok, problem
from .joining import MOST_CLOCK_OFFSET_S, Reach

_SCRIPT = Path(__file__).with_name("doctor_remote.py")
_HOST_WITHIN_S = 60.0
_PORT_WITHIN_S = 5.0
_AT_ONCE = 64


class Look:
    """What was found of one host. `failed` is why nothing could be asked of it; `from_head` why no port of it was
    reached from here; both empty where all is well."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.failed = ""
        self.found: dict[str, Any] = {}
        self.from_head = ""
        self.clock: ClockReading | None = None


def examine_hosts(hosts: str, reach: Reach, scratch: Path) -> list[Advice]:
    """Look at each host of a node set, all at once. Raises RunError for a set that is none, or without any route."""
    names = node_set(hosts)
    address, port = reach.address(names)
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.create_server((address, port), family=family, backlog=len(names) + 8) as server:
        at = (address, int(server.getsockname()[1]))
        with ThreadPoolExecutor(max_workers=min(_AT_ONCE, len(names))) as pool:
            looks = list(pool.map(lambda name: look_at(name, reach.ssh, at, scratch), names))
    apart = offsets({look.name: look.clock.ahead for look in looks if look.clock is not None})
    return [
        advice
        for look in looks
        for advice in (list(problems_of(look, apart.get(look.name), at, scratch)) or [_well(look, apart[look.name])])
    ]


def look_at(name: str, ssh: Ssh, head: tuple[str, int], scratch: Path) -> Look:
    """Ask one host, within a minute."""
    look = Look(name)
    words = ["-c", _SCRIPT.read_text("utf-8"), head[0], str(head[1]), str(scratch)]
    process = subprocess.Popen(
        ssh.command(name, words), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    late = threading.Timer(_HOST_WITHIN_S, process.kill)
    late.start()
    try:
        with process:
            _ask(look, process, ssh)
            if not look.found:
                look.failed = _last_line(process) or f"no answer within {_HOST_WITHIN_S:.0f} s"
    finally:
        late.cancel()
    return look


def _ask(look: Look, process: "subprocess.Popen[str]", ssh: Ssh) -> None:
    assert process.stdin is not None
    assert process.stdout is not None
    stdin, stdout = process.stdin, process.stdout

    def clock() -> float:
        stdin.write("\n")
        stdin.flush()
        return float(stdout.readline())

    with contextlib.suppress(OSError, ValueError):  # it ended, or said what is no answer of ours
        look.found = json.loads(stdout.readline())
        look.from_head = _reached(ssh.hostname(look.name), int(look.found["port"]))
        look.clock = ask(clock)
    with contextlib.suppress(OSError):
        stdin.close()


def _reached(address: str, port: int) -> str:
    """Why a port cannot be reached from here; empty where it can."""
    try:
        socket.create_connection((address, port), timeout=_PORT_WITHIN_S).close()
    except OSError as error:
        return str(error)
    return ""


def _last_line(process: "subprocess.Popen[str]") -> str:
    assert process.stderr is not None
    lines = process.stderr.read().strip().splitlines()
    return lines[-1][:300] if lines else ""


def problems_of(look: Look, apart: float | None, head: tuple[str, int], scratch: Path) -> Iterator[Advice]:
    """What is wrong with a host, each with what to do."""
    if look.failed:
        yield problem(f"{look.name}: ssh", look.failed, _how_to_reach(look.failed, look.name))
        return
    different = unlike(own_software(), look.found)
    if different:
        yield problem(f"{look.name}: software", different, "install on it what is here, or say --remote-python")
    if look.found["to_head"]:
        detail = f"cannot connect to {head[0]}:{head[1]} here: {look.found['to_head']}"
        yield problem(f"{look.name}: port to here", detail, "open the firewall, or say --listen ADDRESS:PORT")
    if look.from_head:
        detail = f"its port {look.found['port']} cannot be reached from here: {look.from_head}"
        yield problem(f"{look.name}: port from here", detail, "open the firewall between the nodes and this machine")
    if look.found["scratch"]:
        yield problem(
            f"{look.name}: scratch", look.found["scratch"], f"make {scratch} there, or give another --scratch"
        )
    if apart is None:
        yield problem(f"{look.name}: clock", "could not be read", "run hwlottery doctor again")
    elif abs(apart) > MOST_CLOCK_OFFSET_S:
        way = "ahead of" if apart > 0 else "behind"
        yield problem(f"{look.name}: clock", f"{abs(apart):.1f} s {way} the others'", "run chrony on it")


def _how_to_reach(said: str, name: str) -> str:
    """What to do about what ssh said last."""
    if "Permission denied" in said:
        return f"let a key in that needs no passphrase here: ssh-copy-id {name}; ssh-agent"
    if "Host key verification failed" in said:
        return f"connect once by hand and accept its key: ssh {name}"
    if "not found" in said or "No such file" in said:
        return "say with --remote-python what starts Python there"
    return f"ssh {name} must work without a question: see ~/.ssh/config, --ssh or HWLOTTERY_SSH"


def _well(look: Look, apart: float) -> Advice:
    return ok(
        look.name,
        f"reached; software as here; ports both ways; clock within {abs(apart):.3f} s of the others'; scratch written",
    )
