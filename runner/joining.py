"""How a run's nodes come to join: who is promised, where the head listens, who is here, and how their clocks stand."""

import contextlib
import sys
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path

from ..cluster import Cluster, Node
from ..cluster.bundle import Bundle
from ..cluster.control import ControlPlane
from ..cluster.identity import Identity
from ..cluster.local import LAUNCHER, promised_here
from ..cluster.network import address_towards, host_and_port
from ..cluster.node import NodeConfig
from ..cluster.node_main import own_software, unlike
from ..cluster.node_sets import node_set
from ..cluster.place import Place
from ..cluster.slurm import address_of
from ..cluster.ssh import Ssh, own_address
from ..evidence import (
    AnyRecord,
    Device,
    Event,
    Launcher,
    Promised,
    RunError,
    RunHeader,
)
from ..evidence.writing import now

LOCAL_JOIN_S = 60.0
LOCAL, SSH, SLURM = "local", "ssh", "slurm"
_STARTED_AT_ONCE = 32


@dataclass(frozen=True, kw_only=True, slots=True)
class Reach:
    """How nodes are reached: by which ssh, or as processes of which launcher's step; where they find the head, how long
    they may take to join, whether their software may differ from the head's, and the bundle that brings it to them.

    Of a step whose launcher knows no names: at which address the nodes have met the head, and who is `missing`.
    """

    ssh: Ssh = field(default_factory=lambda: Ssh(python=(sys.executable,)))
    listen: str | None = None
    join_within_s: float = LOCAL_JOIN_S
    allow_unlike: bool = False
    step: Place | None = None
    identity: Identity | None = None
    bundle: Bundle | None = None
    met_at: str | None = None
    missing: tuple[str, ...] = ()

    @property
    def software(self) -> dict[str, str]:
        """What the nodes' software must be like: hwlottery's in any case, or they do not understand each other."""
        own = own_software()
        return {"hwlottery": own["hwlottery"]} if self.allow_unlike else own

    def address(self, hosts: tuple[str, ...]) -> tuple[str, int]:
        """The address and port at which the head listens for these hosts. Raises RunError."""
        if self.listen is not None:
            return self.listening
        if self.step is None:
            return own_address(self.ssh, hosts), 0
        if self.step.launcher == SLURM:
            return address_towards(address_of(next(name for name in hosts if name != self.step.node))), 0
        return self.met_at or "127.0.0.1", 0  # nobody has come

    @property
    def listening(self) -> tuple[str, int]:
        """The address and port of --listen. Raises RunError."""
        try:
            host, port = host_and_port(self.listen or "")
        except ValueError:
            host, port = "", 0
        if not host:
            raise RunError(f"--listen {self.listen}: give ADDRESS or ADDRESS:PORT")
        return host, port


def promised_nodes(names: tuple[str, ...], gpus_per_node: int | None, slots: int) -> tuple[Promised, ...]:
    """Several nodes as promised, each with what was said of it, or with what this machine has."""
    here = promised_here(slots)
    device: Device
    if gpus_per_node is not None and gpus_per_node > 0:
        device, ranks = "cuda", tuple(f"gpu{index}" for index in range(gpus_per_node))
    elif here.device == "cuda" and gpus_per_node is None:
        device, ranks = "cuda", here.ranks
    else:
        device, ranks = "cpu", tuple(f"slot{index}" for index in range(slots))
    return tuple(Promised(node=name, device=device, ranks=ranks) for name in names)


def names_of(hosts: str | None, reach: Reach) -> tuple[str, ...]:
    """The nodes of --hosts, else of the launcher's step; none for this machine alone. Raises RunError."""
    if hosts is not None:
        return node_set(hosts)
    return reach.step.nodes if reach.step else ()


def launcher_of(hosts: str | None, reach: Reach) -> Launcher:
    """Which launcher starts the nodes, and what it was recognised by."""
    if hosts is not None:
        return Launcher(name=SSH, why=f"--hosts {hosts}"[:2000])
    return Launcher(name=reach.step.launcher, why=reach.step.why[:2000]) if reach.step else LAUNCHER


def alone(header: RunHeader) -> bool:
    """Whether a run is of this machine alone: nothing listens for others."""
    return header.launcher.name != SSH and len(header.promised) == 1


def plane_for(header: RunHeader, reach: Reach) -> ControlPlane:
    """The control plane of a run: on the loopback for this machine alone, else where the nodes reach it.

    Raises RunError where the run was started by another launcher, or on other nodes.
    """
    if alone(header):
        return ControlPlane()
    launcher, names = header.launcher.name, tuple(node.node for node in header.taking_part)
    started = reach.step.launcher if reach.step else SSH
    if started != launcher:
        raise RunError(f"this run is of {launcher}, on {','.join(names)}: start it by that, and not by {started}")
    strangers = [name for name in (reach.step.nodes if reach.step else ()) if name not in (*names, *reach.missing)]
    if strangers:
        raise RunError(f"this run is on {','.join(names)}, and {','.join(strangers)} is not of it: start a new run")
    plane = ControlPlane(*reach.address(names), identity=reach.identity)
    if reach.step is not None:
        _count_out_absent(plane, names, reach, reach.step)
    return plane


def _count_out_absent(plane: ControlPlane, names: tuple[str, ...], reach: Reach, step: Place) -> None:
    """Nobody waits for a node that is not of the step, or that was waited for when the nodes were counted."""
    for name in names:
        if name in reach.missing or name not in step.nodes:
            here = step.count - len(reach.missing)
            why = f"{here} of {step.count} nodes came within {reach.join_within_s:.0f} s ({step.launcher})"
            plane.count_out(name, why if name in reach.missing else f"it is not of this step ({step.launcher})")


def join(
    plane: ControlPlane,
    header: RunHeader,
    cluster: Cluster,
    reach: Reach,
    *,
    log_of: Callable[[str], Path],
    tell: Callable[[str], None],
    joined: Callable[[int], None],
) -> tuple[str, ...]:
    """Start each promised node's worker and wait for them; the nodes that are here. `tell` hears how far that is, and
    `joined` how many are here so far.

    The others are in `plane.lost`, with the reason. Raises RunError where software differs and may not.
    """
    names = tuple(node.name for node in cluster.nodes)
    configs = [_config(node, header, cluster.device) for node in cluster.nodes]
    with contextlib.ExitStack() as stack:
        if header.launcher.name == SSH:
            _start_by_ssh(plane, configs, reach, log_of, tell)
        for config in configs:
            if header.launcher.name != SSH and (len(configs) == 1 or (reach.step and config.name == reach.step.node)):
                plane.start_local(config, log_of(f"node-{config.name}.log"))
        if header.launcher.name != SSH and not alone(header):
            stack.enter_context(plane.open_desk(configs, reach.software))
        return plane.wait_joined(names, reach.join_within_s, joined)


def _start_by_ssh(
    plane: ControlPlane,
    configs: list[NodeConfig],
    reach: Reach,
    log_of: Callable[[str], Path],
    tell: Callable[[str], None],
) -> None:
    """Start the workers of all nodes at once. A node that does not take the bundle says so when it fails to join."""

    def start(config: NodeConfig) -> None:
        log = log_of(f"node-{config.name}.log")
        plane.start_by_ssh(config, reach.ssh, log, reach.software, reach.bundle)

    pool = ThreadPoolExecutor(max_workers=min(_STARTED_AT_ONCE, len(configs)), thread_name_prefix="start")
    try:
        for done, started in enumerate(as_completed([pool.submit(start, config) for config in configs]), start=1):
            started.result()
            if reach.bundle and (done == len(configs) or done % (len(configs) // 8 + 1) == 0):
                tell(f"{reach.bundle.size / 1e6:.0f} MB bundle sent to {done} of {len(configs)} nodes")
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _config(node: Node, header: RunHeader, device: Device) -> NodeConfig:
    return NodeConfig(
        name=node.name,
        run_id=header.run_id,
        device=device,
        ranks=tuple(rank.subject.rpartition("/")[2] for rank in node.ranks),
        scratch=node.scratch,
        beside="hwlottery.runner.telemetry:watch",
    )


def unlike_records(software: Mapping[str, Mapping[str, str]]) -> Iterator[AnyRecord]:
    """An event for each node whose torch or Python is another than the head's, where that was allowed."""
    wanted = own_software()
    del wanted["hwlottery"]  # a node with another one has not joined
    for node, versions in software.items():
        different = unlike(wanted, dict(versions))
        if different:
            yield Event(time=now(), kind="note", subject=node, severity="warning", detail=f"{node} {different} as here")
