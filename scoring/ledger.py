"""The ledger of a rental: node-hours paid, delivered and healthy, by what each run found until the next."""

from collections.abc import Sequence
from datetime import datetime

from msgspec import Struct

from .past_runs import PastRun

BASIS = "from each run to the next: what it promised was paid, who joined was delivered, who failed was not healthy"


class Ledger(Struct, frozen=True, kw_only=True):
    """Node-hours since the first run. `usd` is by the price and the accelerators that each run names; None where a run
    has no price. `usd_unhealthy` is what went to nodes that were not there, or failed."""

    since: datetime
    paid: float
    delivered: float
    healthy: float
    usd: float | None
    usd_unhealthy: float | None
    basis: str = BASIS


def ledger_of(runs: Sequence[PastRun], at: datetime) -> Ledger:
    """The ledger of one cluster's runs, in the order of their starts.

    A run of a part of the cluster tells of that part; of the others what was last found stands.
    """
    paid = delivered = healthy = usd = wasted = 0.0
    state: dict[str, tuple[bool, bool, float]] = {}  # by name: there, healthy, USD an hour
    for place, run in enumerate(runs):
        for seen in run.nodes:
            cost = seen.accelerators * (run.price_per_gpu_hour or 0.0)
            state[seen.name] = (seen.joined, seen.joined and not seen.failed, cost)
        until = runs[place + 1].started if place + 1 < len(runs) else at
        hours = max(0.0, (until - run.started).total_seconds() / 3600)
        paid += hours * len(state)
        delivered += hours * sum(there for there, _, _ in state.values())
        healthy += hours * sum(well for _, well, _ in state.values())
        usd += hours * sum(cost for _, _, cost in state.values())
        wasted += hours * sum(cost for _, well, cost in state.values() if not well)
    priced = bool(runs) and all(run.price_per_gpu_hour is not None for run in runs)
    return Ledger(
        since=runs[0].started,
        paid=paid,
        delivered=delivered,
        healthy=healthy,
        usd=usd if priced else None,
        usd_unhealthy=wasted if priced else None,
    )
