"""doctor's look at other hosts: ssh, software, ports, clocks and scratch, each with its remedy."""

import socket
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

from ..cluster.clocks import offsets
from ..cluster.node_main import own_software, unlike
from ..cluster.node_sets import node_set
from ..evidence import RunError
from .advice import Advice, note, ok, problem
from .clock_records import MOST_CLOCK_OFFSET_S
from .doctor_ports import port_problems
from .doctor_talk import Look
from .joining import Reach

_AT_ONCE = 64


def examine_hosts(hosts: str, reach: Reach, scratch: Path, *, bundled: bool = False) -> list[Advice]:
    """Look at each host of a node set, all at once. With `bundled` none needs to have hwlottery.

    Raises RunError for a set that is none, or without any route.
    """
    names = node_set(hosts)
    address, port = reach.address(names)
    wanted = own_software()
    if bundled:
        del wanted["hwlottery"]
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with ExitStack() as stack:
        server = stack.enter_context(_server(address, port, family, len(names) + 8))
        at = (address, int(server.getsockname()[1]))
        pool = stack.enter_context(ThreadPoolExecutor(max_workers=min(_AT_ONCE, len(names))))
        looks = list(pool.map(lambda name: stack.enter_context(Look(name)).begin(reach.ssh, at, scratch), names))
        there = [look for look in looks if not look.failed]
        list(pool.map(lambda look: look.ask_reach(there), there))
        shared = list(_scratch_problems(there, scratch, pool))
    apart = offsets({look.name: look.clock.ahead for look in looks if look.clock is not None})
    ports = port_problems({look.name: look.unreached for look in there})
    return [*_of_each(looks, ports, apart, wanted=wanted, at=at, scratch=scratch), *shared]


def _server(address: str, port: int, family: int, backlog: int) -> socket.socket:
    try:
        return socket.create_server((address, port), family=family, backlog=backlog)
    except (OSError, UnicodeError) as error:
        raise RunError(f"cannot listen on {address}, port {port}: {getattr(error, 'strerror', error)}") from error


def _of_each(
    looks: list[Look],
    ports: Mapping[str, list[Advice]],
    apart: Mapping[str, float],
    *,
    wanted: Mapping[str, str],
    at: tuple[str, int],
    scratch: Path,
) -> Iterator[Advice]:
    for look in looks:
        found = [
            *_own_problems(look, wanted, at, scratch),
            *ports.get(look.name, ()),
            *_clock_problems(look, apart.get(look.name)),
        ]
        yield from found or [_well(look, apart[look.name], len(looks) > 1)]


def _own_problems(look: Look, wanted: Mapping[str, str], head: tuple[str, int], scratch: Path) -> Iterator[Advice]:
    """What is wrong with a host, each with what to do."""
    if look.failed:
        yield problem(f"{look.name}: ssh", look.failed, _how_to_reach(look.failed, look.name))
        return
    different = unlike(dict(wanted), look.found)
    if different:
        yield problem(f"{look.name}: software", different, _how_to_be_alike(look))
    if look.found["to_head"]:
        detail = f"cannot connect to {head[0]}:{head[1]} here: {look.found['to_head']}"
        yield problem(f"{look.name}: port to here", detail, "open the firewall, or say --listen ADDRESS:PORT")
    if look.from_head:
        detail = f"its port {look.found['port']} cannot be reached from here: {look.from_head}"
        yield problem(f"{look.name}: port from here", detail, "open the firewall between the nodes and this machine")
    if look.found["scratch"]:
        detail, remedy = look.found["scratch"], f"make {scratch} there, or give another --scratch"
        yield problem(f"{look.name}: scratch", detail, remedy)


def _clock_problems(look: Look, apart: float | None) -> Iterator[Advice]:
    if look.failed:
        return
    if apart is None:
        yield problem(f"{look.name}: clock", "could not be read", "run hwlottery doctor again")
    elif abs(apart) > MOST_CLOCK_OFFSET_S:
        way = "ahead of" if apart > 0 else "behind"
        yield problem(f"{look.name}: clock", f"{abs(apart):.1f} s {way} the others'", "run chrony on it")


def _scratch_problems(looks: list[Look], scratch: Path, pool: ThreadPoolExecutor) -> Iterator[Advice]:
    """Whether the hosts' scratch is one filesystem: what one of them writes, the others see, or none does."""
    able = [look for look in looks if not look.found["scratch"]]
    if len(able) < 2:
        return
    writer, others = able[0], able[1:]
    file = writer.ask("write")
    seen = dict(zip(others, pool.map(lambda look: look.ask("sees", file=file), others), strict=True))
    blind = ", ".join(look.name for look, sees in seen.items() if sees is False)
    if file is None or None in seen.values():
        yield note("scratch", f"whether the hosts share {scratch} could not be told", "run hwlottery doctor again")
    elif not blind:
        yield ok("scratch", f"the hosts share {scratch}")
    elif not any(seen.values()):
        yield ok("scratch", f"{scratch} is each host's own")
    else:
        detail = f"what {writer.name} wrote to {scratch} is not seen on {blind}, and is on the other hosts"
        yield problem("scratch", detail, "mount the same filesystem everywhere, or give another --scratch")


def _how_to_reach(said: str, name: str) -> str:
    """What to do about what ssh said last."""
    if "Permission denied" in said:
        return f"let a key in that needs no passphrase here: ssh-copy-id {name}; ssh-agent"
    if "Host key verification failed" in said:
        return f"connect once by hand and accept its key: ssh {name}"
    if "not found" in said or "No such file" in said:
        return "say with --remote-python what starts Python there"
    return f"ssh {name} must work without a question: see ~/.ssh/config, --ssh or HWLOTTERY_SSH"


def _how_to_be_alike(look: Look) -> str:
    if look.found["hwlottery"].startswith("absent") and look.found["torch"] != "absent":
        return "hwlottery is not there: run with --bundle auto brings it (or say --remote-python)"
    return "install on it what is here, or say --remote-python"


def _well(look: Look, apart: float, several: bool) -> Advice:
    ports = "ports both ways, to here and among the hosts" if several else "ports both ways"
    return ok(
        look.name,
        f"reached; software as here; {ports}; clock within {abs(apart):.3f} s of the others'; scratch written",
    )
