"""How a run's nodes come to join: who is promised, where the head listens, who is here, and how their clocks stand."""

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from ..cluster import Cluster
from ..cluster.clocks import ask, clock_here, offsets
from ..cluster.control import ControlPlane, NodeLost
from ..cluster.local import promised_here
from ..cluster.network import host_and_port
from ..cluster.node import NodeConfig
from ..cluster.node_main import own_software
from ..cluster.ssh import Ssh, node_set, own_address
from ..evidence import AnyRecord, Device, Event, Fact, Launcher, Promised, RunError, RunHeader, measured
from ..evidence.writing import now

LOCAL_JOIN_S = 60.0
SSH = "ssh"
_CLOCK_S = 10.0
# Logs and events of several nodes are put in order by their times: a second more and the order is wrong.
MOST_CLOCK_OFFSET_S = 1.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Reach:
    """How the nodes of --hosts are reached: by which ssh, where they find the head, how long they may take to join,
    and whether their software may differ from the head's."""

    ssh: Ssh = field(default_factory=lambda: Ssh(python=(sys.executable,)))
    listen: str | None = None
    join_within_s: float = LOCAL_JOIN_S
    allow_unlike: bool = False

    def address(self, hosts: tuple[str, ...]) -> tuple[str, int]:
        """The address and port at which the head listens for these hosts. Raises RunError."""
        if self.listen is None:
            return own_address(self.ssh, hosts), 0
        try:
            return host_and_port(self.listen)
        except ValueError:
            raise RunError(f"--listen {self.listen}: give ADDRESS or ADDRESS:PORT") from None


def promised_hosts(hosts: str, gpus_per_node: int | None, slots: int) -> tuple[Promised, ...]:
    """The nodes of a node set as promised, each with what was said of it, or with what this machine has.

    Raises RunError for a node set that is none.
    """
    here = promised_here(slots)
    device: Device
    if gpus_per_node is not None and gpus_per_node > 0:
        device, ranks = "cuda", tuple(f"gpu{index}" for index in range(gpus_per_node))
    elif here.device == "cuda" and gpus_per_node is None:
        device, ranks = "cuda", here.ranks
    else:
        device, ranks = "cpu", tuple(f"slot{index}" for index in range(slots))
    return tuple(Promised(node=name, device=device, ranks=ranks) for name in node_set(hosts))


def ssh_launcher(hosts: str) -> Launcher:
    """The launcher as it is recorded for --hosts."""
    return Launcher(name=SSH, why=f"--hosts {hosts}"[:2000])


def plane_for(header: RunHeader, reach: Reach) -> ControlPlane:
    """The control plane of a run: on the loopback for this machine alone, else where the nodes reach it."""
    if header.launcher.name != SSH:
        return ControlPlane()
    return ControlPlane(*reach.address(tuple(node.node for node in header.promised)))


def join(
    plane: ControlPlane, header: RunHeader, cluster: Cluster, reach: Reach, log_of: Callable[[str], Path]
) -> tuple[str, ...]:
    """Start each promised node's worker and wait for them; the nodes that are here.

    The others are in `plane.lost`, with the reason. Raises RunError where software differs and may not.
    """
    for node in cluster.nodes:
        config = NodeConfig(
            name=node.name,
            run_id=header.run_id,
            device=cluster.device,
            ranks=tuple(rank.subject.rpartition("/")[2] for rank in node.ranks),
            scratch=node.scratch,
            beside="hwlottery.runner.telemetry:watch",
        )
        log = log_of(f"node-{node.name}.log")
        if header.launcher.name == SSH:
            plane.start_by_ssh(config, reach.ssh, log, {} if reach.allow_unlike else own_software())
        else:
            plane.start_local(config, log)
    return plane.wait_joined(tuple(node.name for node in cluster.nodes), reach.join_within_s)


def clock_records(plane: ControlPlane, header: RunHeader, nodes: tuple[str, ...]) -> Iterator[AnyRecord]:
    """Each node's clock against the others', and an event for one that is wrong. Nothing for this machine alone."""
    if header.launcher.name != SSH:
        return
    start = now()
    readings = {}
    for node in nodes:
        try:
            readings[node] = ask(lambda node=node: float(plane.call(node, clock_here, within_s=_CLOCK_S)))  # type: ignore[misc]  # mypy cannot infer a lambda with a default
        except NodeLost:
            continue
    for node, seconds in offsets({node: reading.ahead for node, reading in readings.items()}).items():
        uncertainty = readings[node].uncertainty
        yield measured(
            metric="clock.offset",
            subject=node,
            samples=[seconds],
            attempt=len(header.segments),
            start=start,
            end=now(),
        )
        yield Fact(subject=node, key="clock.uncertainty", value=uncertainty)
        if abs(seconds) - uncertainty > MOST_CLOCK_OFFSET_S:
            way = "ahead of" if seconds > 0 else "behind"
            said = f"its clock is {abs(seconds):.1f} s {way} the others' (give or take {uncertainty:.3f} s)"
            yield Event(time=now(), kind="note", subject=node, severity="warning", detail=said)
