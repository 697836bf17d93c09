"""How the nodes' clocks stand against each other, as a trial of the head's own."""

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from ..cluster.clocks import ClockReading, ask, clock_here, offsets
from ..cluster.control import ControlPlane, NodeLost
from ..evidence import AnyRecord, Event, Fact, Fill, NotMeasured, RunHeader, TrialPlan, measured
from ..evidence.writing import file_of, now
from .joining import alone

_CLOCK_S = 10.0
_CLOCKS_AT_ONCE = 8  # more would wait for each other at the head, and say less
# Logs and events of several nodes are put in order by their times: a second more and the order is wrong.
MOST_CLOCK_OFFSET_S = 1.0


def clock_records(plane: ControlPlane, header: RunHeader, nodes: tuple[str, ...]) -> list[AnyRecord]:
    """Each node's clock against the others', as a trial of the head's own, and an event for one that is wrong. Nothing
    for this machine alone."""
    if alone(header) or not nodes:
        return []
    attempt = len(header.segments)
    trial = f"clocks-{attempt}"
    plan = TrialPlan(
        trial=trial,
        probe="inventory",
        function="clocks:ask",
        method="1",
        ranks=nodes,
        deadline_s=_CLOCK_S * len(nodes),
        fills=tuple(Fill(metric="clock.offset", subject=node) for node in nodes),
        attempt=attempt,
    )
    found = list(_clock_readings(plane, nodes, trial, attempt))
    counts = dict(Counter(file_of(record) for record in found))
    ended = Event(time=now(), kind="trial_ended", trial=trial, outcome="finished", counts=counts)
    return [plan, *found, ended]


def _clock_readings(plane: ControlPlane, nodes: tuple[str, ...], trial: str, attempt: int) -> Iterator[AnyRecord]:
    start = now()
    with ThreadPoolExecutor(max_workers=_CLOCKS_AT_ONCE) as pool:
        asked = pool.map(lambda node: _clock_of(plane, node), nodes)
        readings = {node: found for node, found in zip(nodes, asked, strict=True) if found is not None}
    for node in nodes:
        if node not in readings:
            yield NotMeasured(metric="clock.offset", subject=node, reason="died", trial=trial, attempt=attempt)
    for node, seconds in offsets({node: reading.ahead for node, reading in readings.items()}).items():
        uncertainty = readings[node].uncertainty
        yield measured(
            metric="clock.offset",
            subject=node,
            samples=[seconds],
            trial=trial,
            attempt=attempt,
            start=start,
            end=now(),
        )
        yield Fact(subject=node, key="clock.uncertainty", value=uncertainty, trial=trial)
        if abs(seconds) - uncertainty > MOST_CLOCK_OFFSET_S:
            way = "ahead of" if seconds > 0 else "behind"
            said = f"its clock is {abs(seconds):.1f} s {way} the others' (give or take {uncertainty:.3f} s)"
            yield Event(time=now(), kind="note", subject=node, severity="warning", trial=trial, detail=said)


def _clock_of(plane: ControlPlane, node: str) -> ClockReading | None:
    """A node's clock; None where the node is lost meanwhile."""
    try:
        return ask(lambda: float(plane.call(node, clock_here, within_s=_CLOCK_S)))
    except NodeLost:
        return None
