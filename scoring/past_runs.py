"""What history keeps of a run: who was measured, with whom, what failed, and the middle of each metric.

Runs are read one after the other, and this is all that stays of each.
"""

import statistics
from collections.abc import Iterator
from datetime import datetime

from msgspec import Struct

from ..evidence import Params, Run, metric, parse_subject
from .baselines import hardware_of
from .facts import Facts
from .joined import standing
from .scope import nodes_of
from .settings import Settings, settings_of
from .values import ParamsKey, Values, params_key
from .verdict import Verdict, VerdictWord


class Seen(Struct, frozen=True, kw_only=True):
    """A node in one run. `machine` is the hardware behind its name, or its name where that is not known; `partners` are
    the machines of the pairs that were measured; `failed` the required checks that would take it out."""

    name: str
    machine: str
    accelerators: int
    joined: bool
    measured: bool
    partners: frozenset[str]
    failed: tuple[str, ...]
    settings: Settings = ()


class Middle(Struct, frozen=True, kw_only=True):
    """The median of a metric over all subjects of a run that have it with these params."""

    metric: str
    params: Params
    value: float
    subjects: int


class PastRun(Struct, frozen=True, kw_only=True):
    """One run as history needs it. `ended` is when its last trial did; `contains` are accepted runs whose records stand
    in it, too: nodes joined them."""

    run_id: str
    path: str
    cluster: str
    started: datetime
    ended: datetime
    verdict: VerdictWord
    whole: bool
    nodes: tuple[Seen, ...]
    middles: tuple[Middle, ...]
    failures: int
    node_days: float
    price_per_gpu_hour: float | None
    contains: frozenset[str]


# A run that was cut off ends without its last record and its sums: what had been measured by then was measured.
_OF_A_CUT = ("the run did not finish", "no checksums: the run did not finish")


def past_run(run: Run, verdict: Verdict) -> PastRun | None:
    """What history keeps of a run; None of one that was never begun, or that is simulated."""
    header, started = run.header, run.started
    if started is None or header.simulated:
        return None
    now = standing(run)
    return PastRun(
        run_id=header.run_id,
        path=str(run.path),
        cluster=" ".join(part for part in (header.provider, header.cluster) if part) or "not named",
        started=started,
        ended=max((event.time for event in run.events if event.kind == "trial_ended"), default=started),
        verdict=verdict.verdict,
        whole=run.complete,
        nodes=tuple(_nodes(now, verdict, trusted=all(one.detail in _OF_A_CUT for one in run.problems))),
        middles=tuple(_middles(Values(now), len(now.header.promised))),
        failures=verdict.reliability.failures,
        node_days=verdict.reliability.node_days,
        price_per_gpu_hour=header.price_per_gpu_hour,
        contains=frozenset(join.run_id for join in header.joins),
    )


def _nodes(run: Run, verdict: Verdict, *, trusted: bool) -> Iterator[Seen]:
    """Each promised node. Where records are lost or altered nobody counts as measured."""
    machines, settings = machines_of(run), settings_of(run)
    joined = {node for event in run.events if event.kind == "node_joined" for node in nodes_of(event.subject)}
    measured = {node for record in run.measurements for node in nodes_of(record.subject)} if trusted else set()
    pairs = {nodes_of(record.subject) for record in run.measurements if _is_pair(record.subject)} if trusted else set()
    for node in run.header.promised:
        name = node.node
        others = {one for pair in pairs if name in pair for one in pair} - {name}
        failed = dict.fromkeys(
            f.check for f in verdict.findings if f.required and nodes_of(f.excludes or "") == (name,)
        )
        yield Seen(
            name=name,
            machine=machines[name],
            accelerators=len(node.ranks) if node.device == "cuda" else 0,
            joined=name in joined,
            measured=name in measured,
            partners=frozenset(machines.get(other, other) for other in others),
            failed=tuple(failed),
            settings=settings[name],
        )


def machines_of(run: Run) -> dict[str, str]:
    """The hardware behind each promised node. An identity that several nodes share tells none of them apart, and is the
    name then, as where there is none."""
    found = hardware_of(run.header, Facts(run))
    shared = {one for one in found.values() if list(found.values()).count(one) > 1}
    names = [node.node for node in run.header.promised]
    return {name: found[name] if name in found and found[name] not in shared else f"named {name}" for name in names}


def _is_pair(subject: str) -> bool:
    try:
        return parse_subject(subject).kind in ("pair", "rail")
    except ValueError:
        return False


def _middles(values: Values, nodes: int) -> Iterator[Middle]:
    """A figure of the whole cluster is one of so many nodes: with fewer it is another."""
    found: dict[tuple[str, ParamsKey], tuple[Params, list[float]]] = {}
    for name, subject in values.pairs():
        for value in values.of(name, subject):
            if value.value is not None and metric(name).better != "neither":
                params = {"nodes": nodes, **value.params} if subject == "cluster" else value.params
                found.setdefault((name, params_key(params)), (params, []))[1].append(value.value)
    for (name, _), (params, numbers) in found.items():
        yield Middle(metric=name, params=params, value=statistics.median(numbers), subjects=len(numbers))
