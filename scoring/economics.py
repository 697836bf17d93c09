"""What the cluster gives for its money: utilisation, goodput, USD a useful PFLOP-day, a training run, spares.

An interval has failure rate and speed both at their bad ends, and both at their good ends.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from ..evidence import Run
from .derived import Figures
from .finding_costs import finding_costs
from .goodput import longest_save_s
from .policy_terms import Terms
from .projection import HOURS_A_MONTH, Outlook, Spare, hot_spare_pays_from_s, outlook, paid_a_day, spares_needed
from .reliability import observed_seconds
from .rental import Rental, rental_of
from .verdict import Economics, Finding, Interval, Replacement
from .words import counted, percent, three_digits

SAVE_OVERHEAD = 0.05  # the longest save is the one whose overhead stays at this share
DIGITS = 6
_WAYS: dict[Spare, str] = {"hot": "a hot spare", "cold": "a cold spare", "none": "no spare"}


def economics(
    run: Run, figures: Figures, excluded: tuple[str, ...], findings: Sequence[Finding] = (), terms: Terms | None = None
) -> Economics:
    """The figures that can be had; for each of the others a line that says what it needs. Raises CostsError."""
    rental = rental_of(run, figures, excluded, terms)
    costs = finding_costs(rental, figures, excluded, findings)
    hours = observed_seconds(run) / 3600
    plain = Economics(
        mfu=rental.mfu,
        run_flops=rental.run_flops,
        findings=costs,
        findings_usd_per_month=sum(cost.usd.value or 0.0 for cost in costs) if rental.price is not None else None,
        test_node_hours=hours * len(run.header.promised),
        test_usd=None if rental.price is None else hours * rental.paid_accelerators * rental.price,
        missing=rental.missing,
    )
    return rounded(_projected(plain, rental) if rental.save_s and rental.subjects else plain)


def _projected(plain: Economics, rental: Rental) -> Economics:
    """With all that rests on a measured save."""
    seen = _Ends(rental, rental.spare)
    trained = f"model FLOPs of the burn-in, {counted(len(rental.subjects), 'accelerator')}"
    return msgspec.structs.replace(
        plain,
        goodput=seen.goodput(),
        usd_per_pflop_day=seen.usd_per_pflop_day(),
        effective_throughput=seen.rising(
            lambda found: found.effective,
            "share",
            f"MFU x goodput x (1 - {percent(rental.loss or 0.0)} lost to stragglers) x {len(rental.subjects)} of "
            f"{counted(round(seen.at['value'].rented_accelerators), 'paid accelerator')}",
        ),
        run_s=seen.falling(lambda found: found.run_s, "s", trained),
        run_usd=seen.falling(lambda found: found.run_usd, "USD", f"{trained}, {seen.paid()}"),
        replacements=_replacements(rental),
        hot_spare_pays_from_s=_hot_spare_pays_from(rental),
        spares=_spares(rental),
        checkpoint_interval_s=seen.rising(
            lambda found: found.interval_s, "s", f"Daly's, for saves of {three_digits(rental.save_s or 0.0)} s"
        ),
        longest_save_s=_longest_save(seen),
        situation=seen.at["value"],
    )


class _Ends:
    """The outlook as it is (value), and with everything at its bad (low) and its good (high) end."""

    def __init__(self, rental: Rental, spare: Spare) -> None:
        self.rental = rental
        self.spare = spare
        self.at = {end: rental.situation(spare, end=end) for end in ("low", "value", "high")}
        self.seen = {end: outlook(at) for end, at in self.at.items()}

    def rising(self, of: Callable[[Outlook], float | None], unit: str, basis: str) -> Interval | None:
        """A figure of which more is better."""
        low, value, high = (of(self.seen[end]) for end in ("low", "value", "high"))
        return None if value is None else Interval(value=value, low=low, high=high, unit=unit, basis=basis)

    def falling(self, of: Callable[[Outlook], float | None], unit: str, basis: str) -> Interval | None:
        """A figure of which less is better."""
        high, value, low = (of(self.seen[end]) for end in ("low", "value", "high"))
        return None if value is None else Interval(value=value, low=low, high=high, unit=unit, basis=basis)

    def goodput(self) -> Interval:
        """Never missing where a save was measured."""
        low, value, high = (self.seen[end].goodput for end in ("low", "value", "high"))
        return Interval(value=value, low=low, high=high, unit="share", basis=_goodput_basis(self.rental, self.spare))

    def usd_per_pflop_day(self) -> Interval | None:
        """Of what training makes use of."""
        basis = f"{self.paid()}, model FLOPs of the burn-in, one run"
        return self.falling(lambda found: found.usd_per_pflop_day, "USD", basis)

    def paid(self) -> str:
        """What is paid for."""
        spares = self.at["value"].spare_nodes
        return _paid(self.rental) + (f", with {counted(spares, 'spare node')}" if spares else "")


def _goodput_basis(rental: Rental, spare: Spare) -> str:
    wait = rental.waits[spare].seconds / 3600
    waits = f"{three_digits(wait)} h for another node ({_WAYS[spare]})" if wait else f"{_WAYS[spare]} at once"
    rate = (rental.rate.point or 0.0) * 1000
    return (
        f"saves of {three_digits(rental.save_s or 0.0)} s as measured; recovery: {rental.recovery.source}; {waits}"
        f"{'' if rental.costs.spare else ' assumed'}; {three_digits(rate)} failures per 1000 node-days projected, "
        f"{counted(rental.nodes, 'node')}"
    )


def _paid(rental: Rental) -> str:
    """The price, and what is paid beside it."""
    costs = rental.costs
    told = [f"{three_digits(rental.price or 0.0)} USD an accelerator-hour"]
    if costs.usd_per_month:
        told.append(f"{three_digits(costs.usd_per_month)} USD a month of storage, egress and support")
    if costs.setup_hours:
        of = f"of {three_digits(costs.rental_months)} months"
        told.append(f"{three_digits(costs.setup_hours)} h {of} to set up")
    return ", ".join(told)


def _replacements(rental: Rental) -> tuple[Replacement, ...]:
    """The three ways; the cheapest pays the least for what gets done."""
    ways = {way: _Ends(rental, way) for way in _WAYS}
    costs = {
        way: paid_a_day(seen.at["value"]) / seen.seen["value"].goodput
        for way, seen in ways.items()
        if seen.seen["value"].goodput > 0
    }
    cheapest = min(costs, key=lambda way: costs[way], default=None)
    return tuple(
        Replacement(
            spare=way,
            wait_hours=rental.waits[way].seconds / 3600,
            source=rental.waits[way].source,
            assumed=way == rental.spare,
            spare_nodes=seen.at["value"].spare_nodes,
            cheapest=way == cheapest,
            goodput=seen.goodput(),
            usd_per_pflop_day=seen.usd_per_pflop_day(),
        )
        for way, seen in ways.items()
    )


def _hot_spare_pays_from(rental: Rental) -> Interval | None:
    """None where nothing ever fails: then no spare pays."""
    ends = [
        hot_spare_pays_from_s(rental.situation("hot", end=end), rental.situation("none", end=end))
        for end in ("value", "low", "high")
    ]
    if not math.isfinite(ends[0]):
        return None
    spares = counted(rental.situation("hot").spare_nodes, "spare node")
    basis = f"a longer wait costs more than {spares} beside {counted(rental.nodes, 'node')} that train"
    high = max(ends)
    return Interval(value=ends[0], low=min(ends), high=high if math.isfinite(high) else None, unit="s", basis=basis)


def _spares(rental: Rental) -> Interval:
    """Spares for as long as a node is away, at each end of the failure rate."""
    hours, rate = rental.waits["none"].seconds / 3600, rental.rate
    low, value, high = (spares_needed(rental.nodes, at, hours) for at in (rate.low, rate.point or 0.0, rate.high))
    rent = ""
    if rental.price is not None:
        hot = rental.spare_nodes("hot", rate.point or 0.0)
        month = hot * len(rental.subjects) / rental.nodes * rental.price * HOURS_A_MONTH
        rent = f"; {three_digits(float(round(month)))} USD a month for {counted(hot, 'hot one')}"
    basis = (
        f"{counted(rental.nodes, 'node')} run 95 % of the time, each away {three_digits(hours)} h after a failure "
        f"({rental.waits['none'].source}){rent}"
    )
    return Interval(value=value, low=low, high=high, unit="nodes", basis=basis)


def _longest_save(seen: _Ends) -> Interval | None:
    """None where nothing ever fails: then any save is short enough."""
    low, value, high = (longest_save_s(SAVE_OVERHEAD, seen.at[end].mtbf_s) for end in ("low", "value", "high"))
    if not math.isfinite(value):
        return None
    basis = f"keeps the overhead of saves at {percent(SAVE_OVERHEAD)} at most (Young)"
    return Interval(value=value, low=low, high=high if math.isfinite(high) else None, unit="s", basis=basis)


def rounded(money: Economics) -> Economics:
    """The same with figures that read alike on every platform."""
    return msgspec.convert(_rounded(msgspec.to_builtins(money)), Economics)


def _rounded(part: Any) -> Any:
    if isinstance(part, dict):
        return {key: _rounded(value) for key, value in part.items()}
    if isinstance(part, list | tuple):
        return [_rounded(value) for value in part]
    return float(f"{part:.{DIGITS}g}") if isinstance(part, float) else part
