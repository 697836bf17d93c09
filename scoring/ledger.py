"""The ledger of a rental: node-hours paid, delivered and healthy, by what each run found until the next."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime

from msgspec import Struct

from .past_runs import PastRun, Seen

BASIS = "from each run to the next: what it promised was paid, who joined was delivered, who failed was not healthy"


class LedgerLine(Struct, frozen=True, kw_only=True):
    """Node-hours from one run to the next, in the state that it found; USD where it has a price."""

    run_id: str
    since: datetime
    until: datetime
    paid: float
    delivered: float
    healthy: float
    usd: float | None
    usd_unhealthy: float | None


class Ledger(Struct, frozen=True, kw_only=True):
    """Node-hours since the first run. `usd` is by the price and the accelerators that each run names; None where a run
    has no price. `usd_unhealthy` is what went to nodes that were not there, or failed."""

    since: datetime
    paid: float
    delivered: float
    healthy: float
    usd: float | None
    usd_unhealthy: float | None
    lines: tuple[LedgerLine, ...] = ()
    basis: str = BASIS


class _State(Struct, frozen=True, kw_only=True):
    """How a node was last found, and what it costs an hour."""

    there: bool
    healthy: bool
    usd: float


def ledger_of(runs: Sequence[PastRun], at: datetime) -> Ledger:
    """The ledger of one cluster's runs, in the order of their starts."""
    lines = tuple(_lines(runs, at))
    priced = bool(lines) and all(line.usd is not None for line in lines)
    return Ledger(
        since=runs[0].started,
        paid=sum(line.paid for line in lines),
        delivered=sum(line.delivered for line in lines),
        healthy=sum(line.healthy for line in lines),
        usd=_sum(line.usd for line in lines) if priced else None,
        usd_unhealthy=_sum(line.usd_unhealthy for line in lines) if priced else None,
        lines=lines,
    )


def _lines(runs: Sequence[PastRun], at: datetime) -> Iterator[LedgerLine]:
    """A run of a part of the cluster tells of that part; of the others what was last found stands."""
    state: dict[str, _State] = {}
    ends = [*(run.started for run in runs[1:]), at]
    for run, until in zip(runs, ends, strict=True):
        state |= {seen.name: _state(seen, run.price_per_gpu_hour or 0.0) for seen in run.nodes}
        yield _line(run, state, until)


def _state(seen: Seen, price: float) -> _State:
    well = seen.joined and not seen.failed
    return _State(there=seen.joined, healthy=well, usd=seen.accelerators * price)


def _line(run: PastRun, state: Mapping[str, _State], until: datetime) -> LedgerLine:
    hours = max(0.0, (until - run.started).total_seconds() / 3600)
    priced = run.price_per_gpu_hour is not None
    return LedgerLine(
        run_id=run.run_id,
        since=run.started,
        until=max(until, run.started),
        paid=hours * len(state),
        delivered=hours * sum(one.there for one in state.values()),
        healthy=hours * sum(one.healthy for one in state.values()),
        usd=hours * sum(one.usd for one in state.values()) if priced else None,
        usd_unhealthy=hours * sum(one.usd for one in state.values() if not one.healthy) if priced else None,
    )


def _sum(parts: Iterable[float | None]) -> float:
    return sum(part for part in parts if part is not None)
