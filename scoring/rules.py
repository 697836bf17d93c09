"""Named rules: what a policy can demand that is no single metric or fact. Each judges one promised subject."""

from collections.abc import Callable, Sequence

from msgspec import Struct

from ..evidence import Event
from .defects import defects
from .derived import Figures
from .happenings import SILENCE, Happenings
from .line_rate import rdma_ports
from .policy_model import RuleName
from .reliability import shortest_look
from .verdict import Result
from .words import counted, several


class Ruled(Struct, frozen=True, kw_only=True):
    """What a rule says of one subject."""

    result: Result
    observed: str
    expected: str
    reason: str = ""
    detail: str = ""
    trials: tuple[str, ...] = ()
    number: float | None = None  # what the contract of a check compares, where the rule has a figure
    unit: str = ""
    statement: str = ""  # in place of the check's


def _evidence_complete(_subject: str, figures: Figures, happenings: Happenings) -> Ruled:
    expected = "all records there, none altered, the run finished"
    whole = happenings.whole
    known = (figures.measured, happenings) if whole is happenings.run else (None, None)
    found = [*whole.problems, *defects(whole, *known)]
    if not found:
        return Ruled(result="pass", observed="whole", expected=expected)
    return Ruled(
        result="not_measured",
        observed="",
        expected=expected,
        reason="incomplete",
        detail=several([str(problem) for problem in found], 5)[:1500],
    )


def _node_responds(node: str, _figures: Figures, happenings: Happenings) -> Ruled:
    """Fails where a node never joined, died or hung. Where that cannot be told it is not measured."""
    expected = "joins, and answers until the run ends"
    silences = happenings.silent.get(node, [])
    if silences:
        never = node not in happenings.joined and node not in happenings.seen
        said = "never joined" if never else ", ".join(_what_silenced(silences))
        detail = next((event.detail for event in silences if event.kind == "node_lost" and event.detail), "")
        detail = (detail or next((event.detail for event in silences if event.detail), ""))[:500]
        why = detail.removeprefix("never joined").lstrip(": ")
        return Ruled(
            result="fail", observed=said, expected=expected, detail=detail,
            trials=tuple(dict.fromkeys(event.trial for event in silences if event.trial)),
            statement=f"{node} {said}: {why.rstrip('.')}." if why else "",
        )  # fmt: skip
    if node in happenings.unexplained:
        detail = "a trial with this node died or ran out of time, and no record says on which node"
        return Ruled(result="not_measured", observed="", expected=expected, reason="incomplete", detail=detail)
    if node in happenings.joined:
        return Ruled(result="pass", observed="joined and answered", expected=expected)
    if node in happenings.seen:
        detail = "it has records and no record of its joining"
        return Ruled(result="not_measured", observed="", expected=expected, reason="incomplete", detail=detail)
    return Ruled(result="fail", observed="never joined", expected=expected)


def _what_silenced(silences: Sequence[Event]) -> list[str]:
    """In words. That a node was lost says more than that it lost its worker then."""
    gone = {event.subject for event in silences if event.kind == "node_lost"}
    kinds = [e.kind for e in silences if not (e.kind == "worker_lost" and e.subject in gone)]
    return list(dict.fromkeys(SILENCE[kind] for kind in kinds))


def _node_accelerators(name: str, figures: Figures, _happenings: Happenings) -> Ruled:
    """A policy for accelerators says nothing of a node that has none."""
    node = figures.node(name)
    expected = "accelerators that torch reaches by CUDA"
    if node is not None and node.device == "cuda" and node.ranks:
        return Ruled(result="pass", observed=counted(len(node.ranks), "accelerator"), expected=expected)
    detail = "the node was taken into the run with its CPUs"
    return Ruled(result="not_measured", observed="", expected=expected, reason="unsupported", detail=detail)


def _health_events(node: str, figures: Figures, happenings: Happenings) -> Ruled:
    """Fails on an Xid, ECC or link event of severity error. None seen says nothing where the kernel log is closed."""
    expected = "no Xid, uncorrected error or lost link"
    events = happenings.trouble.get(node, [])
    if events:
        said = several([event.detail or event.kind for event in events], 3)
        return Ruled(result="fail", observed=said, expected=expected)
    beside = happenings.said_aside.get(node, [])
    if beside:
        said = several([event.detail or event.kind for event in beside], 3)
        return Ruled(result="warn", observed=said, expected=expected)
    if node in happenings.log_watched:
        return Ruled(result="pass", observed="none seen", expected=expected)
    closed = (figures.facts.why_not(node, "kernel_log.watched") or "") != ""
    return Ruled(
        result="not_measured",
        observed="",
        expected=expected,
        reason="closed_to_tenant" if closed else "not_returned",
        detail="the kernel log cannot be read from here" if closed else "the kernel log was not watched all the time",
    )


def _run_length(_subject: str, _figures: Figures, happenings: Happenings) -> Ruled:
    """How long the run looked, without the pauses between its starts. Too short is not measured, not a fault. Where
    nodes joined an accepted run, each of the two parts must have been long enough."""
    hours = shortest_look(happenings.whole) / 3600
    return Ruled(result="pass", observed="", expected="", number=hours, unit="h")


def _node_count(_subject: str, _figures: Figures, happenings: Happenings) -> Ruled:
    """How many of the promised nodes joined."""
    joined = sum(node.node in happenings.joined for node in happenings.run.header.promised)
    return Ruled(result="pass", observed="", expected="", number=float(joined), unit="nodes")


def _fabric_network(name: str, figures: Figures, _happenings: Happenings) -> Ruled:
    """Fails where NCCL talks over sockets although an RDMA port is up; warns where it goes round by host memory."""
    node, facts = figures.node(name), figures.facts
    expected = "RDMA where there is any, straight from the accelerators' memory"
    ranks = [f"{name}/{rank}" for rank in node.ranks] if node else []
    networks = {str(seen) for rank in ranks if (seen := facts.get(rank, "fabric.network")) is not None}
    ports = sorted(rdma_ports(facts, name))
    if not networks:
        detail = "NCCL did not say which network it uses"
        return Ruled(result="not_measured", observed="", expected=expected, reason="not_returned", detail=detail)
    observed = ", ".join(sorted(networks))
    if "Socket" in networks and ports:
        why = f"{several(ports)} {'is' if len(ports) == 1 else 'are'} up: the RDMA fabric itself was not tested"
        return Ruled(result="fail", observed="sockets", expected=expected, detail=why)
    if "Socket" in networks:
        return Ruled(result="pass", observed="sockets", expected=expected, detail="no RDMA port is seen up")
    if any(facts.get(rank, "fabric.gpudirect") is False for rank in ranks):
        detail = "no GPUDirect RDMA: bytes go round by host memory"
        return Ruled(result="warn", observed=observed, expected=expected, detail=detail)
    return Ruled(result="pass", observed=observed, expected=expected)


Rule = Callable[[str, Figures, Happenings], Ruled]
RULES: dict[RuleName, Rule] = {
    "evidence.complete": _evidence_complete,
    "node.responds": _node_responds,
    "node.accelerators": _node_accelerators,
    "health.events": _health_events,
    "run.length": _run_length,
    "node.count": _node_count,
    "fabric.network": _fabric_network,
}
