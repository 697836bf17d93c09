"""Taking nodes into an accepted run: a further tranche, or nodes in place of others.

The accepted run stays as it is. A new run begins as its copy, with the grown promise in run.json; newcomers are
measured alone and with partners among the accepted nodes, and one verdict is given on all.
"""

import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ..cluster.node_sets import node_set
from ..evidence import FORMAT, Event, Joined, Promised, Run, RunError, RunHeader, Segment
from ..evidence.header import MOST_NODES
from ..evidence.reading import sha256_of
from ..evidence.writing import now
from .joining import Reach, launcher_of, names_of, promised_nodes
from .promise import refuse_odd_names_of, scratch_of

if TYPE_CHECKING:
    from .session import MakeDoubts

# Two partners tell a node from its links, and one may fail; four make two pairs of accepted nodes, which show what a
# good pair does today.
MOST_PARTNERS = 4


@dataclass(frozen=True, kw_only=True, slots=True)
class JoinRequest:
    """What a user asks of a join. `preferred` are the accepted nodes that may be partners, the best first; `replaces`
    are texts FORMER=NEWCOMER. With `rerun_changed` every accepted node takes part: all may have to be done again."""

    accepted: Run
    out: Path
    preferred: tuple[str, ...]
    hosts: str | None = None
    partners: str | None = None
    replaces: tuple[str, ...] = ()
    gpus_per_node: int | None = None
    rerun_changed: bool = False
    command: tuple[str, ...] = ()
    reach: Reach = field(default_factory=Reach)
    doubts: "MakeDoubts | None" = None


def joined_header(request: JoinRequest) -> RunHeader:
    """The header of the run that begins as a copy of the accepted one. Raises RunError for what cannot be joined."""
    old = request.accepted.header
    scratch = scratch_of(old)
    if old.simulated or scratch is None:
        raise RunError(f"{request.accepted.path} is simulated, or names no filesystem: nothing can join it")
    refuse_odd_names_of(old, str(request.accepted.path))
    newcomers, replaces = _newcomers(request)
    partners = _partners(request, newcomers, set(replaces.values()))
    former = tuple(node for node in old.promised if node.node in replaces.values())
    kept = tuple(node for node in old.promised if node not in former)
    join = Joined(
        run_id=old.run_id,
        sha256=sha256_of(request.accepted.path / "SHA256SUMS"),
        last_number=request.accepted.last_number,
        starts=len(old.segments),
        newcomers=newcomers,
        partners=partners,
        replaces=replaces,
        former=former,
    )
    gone = {node.node for node in former}
    if len(kept) + len(newcomers) > MOST_NODES:
        raise RunError(f"{len(kept) + len(newcomers):,} nodes together, and a run has at most {MOST_NODES:,}")
    return msgspec.structs.replace(
        old,
        format=FORMAT,
        run_id=f"{now():%Y%m%d-%H%M%S}-{secrets.token_hex(3)}",
        launcher=launcher_of(request.hosts, request.reach),
        promised=(*kept, *_as_promised(request, newcomers, replaces)),
        filesystems=(
            *(name for name in old.filesystems if name.partition("/")[0] not in gone),
            *(f"{name}/fs:{scratch}" for name in newcomers),
        ),
        joins=(*old.joins, join),
    )


def is_join_beginning(header: RunHeader) -> bool:
    """Whether the next start is the first of a join."""
    return bool(header.joins) and len(header.segments) == header.joins[-1].starts


def _newcomers(request: JoinRequest) -> tuple[tuple[str, ...], dict[str, str]]:
    """Who is to be taken in, and for whom each of them stands, if for anybody."""
    promised = {node.node for node in request.accepted.header.promised}
    stands_for = dict(_replacement(text, promised) for text in request.replaces)
    names = names_of(request.hosts, request.reach)
    if not names:
        raise RunError("--join takes nodes in: name them with --hosts, or start it inside Slurm on their nodes")
    if request.hosts is None:  # a step's tasks are newcomers and partners in one
        names = tuple(name for name in names if name not in promised or name in stands_for)
    strange = sorted(stands_for.keys() - set(names))
    if strange or not names:
        raise RunError(f"none of the nodes to take in is {', '.join(strange) or 'new'}: name it in --hosts")
    replaces = {name: stands_for.get(name, name) for name in names if name in stands_for or name in promised}
    if len(set(replaces.values())) < len(replaces):
        raise RunError("two nodes to take in stand in for the same one: --replaces names each once")
    return names, replaces


def _replacement(text: str, promised: set[str]) -> tuple[str, str]:
    """'node03=node09' as (newcomer, former)."""
    former, _, newcomer = text.partition("=")
    if not newcomer or former not in promised:
        raise RunError(f"--replaces {text}: give FORMER=NEWCOMER, where FORMER is a node of the accepted run")
    return newcomer, former


def _partners(request: JoinRequest, newcomers: tuple[str, ...], gone: set[str]) -> tuple[str, ...]:
    """The accepted nodes that take part: those named, those of the Slurm step, or the best of them."""
    old = request.accepted.header
    able = [node.node for node in old.promised if node.node not in gone]
    if request.partners is not None:
        named = node_set(request.partners, "--partners")
        strange = sorted(set(named) - set(able))
        if strange:
            raise RunError(f"--partners: {', '.join(strange)} is not among the accepted nodes that stay")
    elif request.hosts is None:
        named = tuple(name for name in names_of(None, request.reach) if name not in newcomers)
    elif request.rerun_changed:
        named = tuple(able)
    else:
        named = tuple(name for name in request.preferred if name in able)[:MOST_PARTNERS]
    if request.rerun_changed and set(named) != set(able):
        raise RunError("with --rerun-changed every accepted node takes part: all may have to be measured again")
    return named


def _as_promised(
    request: JoinRequest, newcomers: tuple[str, ...], replaces: dict[str, str]
) -> tuple[Promised, ...]:  # fmt: skip
    """Newcomers with what was said of them, else with what those have whom they stand for, or any accepted node."""
    if request.gpus_per_node is not None:
        slots = max((len(node.ranks) for node in request.accepted.header.promised if node.device == "cpu"), default=1)
        return promised_nodes(newcomers, request.gpus_per_node, slots)
    accepted = {node.node: node for node in request.accepted.header.promised}
    like = next(iter(accepted.values()))
    return tuple(
        msgspec.structs.replace(accepted.get(replaces.get(name, ""), like), node=name) for name in newcomers
    )  # fmt: skip


def newcomer_records(header: RunHeader) -> Iterator[Event]:
    """What is to be said of a join's newcomers: for whom they stand, whether their hardware is new, and whether it is
    known from elsewhere."""
    join = header.joins[-1]
    before: dict[str, str] = {}
    for segment in header.segments[: join.starts]:
        before |= segment.hardware
    for name in join.newcomers:
        said = _of_newcomer(name, join, before, header.segments[-1])
        if said:
            yield Event(time=now(), kind="note", subject=name, severity="warning", detail=said)


def _of_newcomer(name: str, join: Joined, before: dict[str, str], segment: Segment) -> str:
    former, found = join.replaces.get(name), segment.hardware.get(name)
    told = [f"{name} stands in for {former}"] if former not in (None, name) else []
    if former == name and found is not None and name in before:
        told.append(
            f"{name} is measured again: its hardware is the same"
            if found == before[name]
            else f"the hardware behind {name} changed: it was {before[name][:12]}, is {found[:12]}"
        )
    owners = [node for node, hardware in before.items() if hardware == found and node != name]
    shared = list(segment.hardware.values()).count(found or "") > 1
    if len(owners) == 1 and not shared:  # an identity that several nodes share tells nothing of one
        told.append(f"the hardware behind {name} was {owners[0]}'s")
    return "; ".join(told)
