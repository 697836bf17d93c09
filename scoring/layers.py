"""The layers of a check: contract, reference, peers, baseline and uniformity. Each judges one value."""

import math
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

import msgspec
from msgspec import Struct

from ..evidence import Metric
from ..evidence.records import Params, Scalar
from ..references import Entry, References, ReferenceValue
from .baselines import Against, Before, against, in_words, suspected
from .facts import finite
from .policy_layers import Baseline, Contract, Reference, Uniform
from .values import Value
from .verdict import Layer, Result
from .words import counted, figure, percent


class Judged(Struct, frozen=True, kw_only=True):
    """What one layer says of one value: the result, what was expected in words and as a number, and any remark."""

    layer: Layer
    result: Result
    expected: str
    threshold: float | None = None
    reason: str = ""
    detail: str = ""
    share: float | None = None  # of the reference, 1 and above is as good as it
    outlier: bool = False
    not_judged: str = ""  # what this layer could not say, for the report


def share_of(value: float, reference: float, metric: Metric) -> float:
    """The value as a share of a reference, above 1 where it is better. Infinite where a time is 0."""
    if metric.better == "lower":
        return reference / value if value > 0 else math.inf
    return value / reference


def by_contract(value: Scalar, contract: Contract, unit: str) -> Judged:
    """Against the buyer's own numbers."""
    if contract.equals is not None:
        same = value == contract.equals and isinstance(value, bool) == isinstance(contract.equals, bool)
        return Judged(layer="contract", result="pass" if same else "fail", expected=figure(contract.equals, unit))
    number = as_number(value)
    if number is None:
        wanted = f"a number to compare with {_bounds(contract, unit)}"
        return Judged(layer="contract", result="not_measured", expected=wanted, reason="parse_error")
    hard = _outside(number, contract.at_least, contract.at_most)
    soft = _outside(number, contract.warn_at_least, contract.warn_at_most)
    result: Result = "fail" if hard is not None else "warn" if soft is not None else "pass"
    threshold = hard if hard is not None else soft if soft is not None else _first_bound(contract)
    return Judged(layer="contract", result=result, expected=_bounds(contract, unit), threshold=threshold)


def as_number(value: Scalar) -> float | None:
    """A number, or None. "unlimited" is what inventory writes of a limit that is none."""
    if value == "unlimited":
        return math.inf
    return finite(value)


def _outside(number: float, least: float | None, most: float | None) -> float | None:
    """The bound that a number is beyond, or None."""
    if least is not None and not number >= least:
        return least
    return most if most is not None and not number <= most else None


@lru_cache(maxsize=1024)
def _first_bound(contract: Contract) -> float | None:
    bounds = (contract.at_least, contract.at_most, contract.warn_at_least, contract.warn_at_most)
    return next((bound for bound in bounds if bound is not None), None)


@lru_cache(maxsize=1024)
def _bounds(contract: Contract, unit: str) -> str:
    parts = [
        f"{word} {figure(bound, unit)}"
        for word, bound in (
            ("at least", contract.at_least),
            ("at most", contract.at_most),
            ("better at least", contract.warn_at_least),
            ("better at most", contract.warn_at_most),
        )
        if bound is not None
    ]
    return ", ".join(parts)


class Comparison(Struct, frozen=True, kw_only=True):
    """The reference value that a check compares with, and the shares that warn and fail; or why there is none."""

    found: ReferenceValue | None = None
    source: str = ""
    kind: str = ""
    stands_in: bool = False  # the peak, where the kind that was asked for is not known
    warn: float | None = None
    fail: float | None = None
    why_none: str = ""


def comparison(
    reference: Reference, hardware: Entry | None, metric: Metric, params: Params, references: References
) -> Comparison:
    """Find what this kind of accelerator or fabric can do; where the policy allows it, its peak stands in and only
    warns."""
    if hardware is None:
        return Comparison(why_none="this kind of accelerator has no reference")
    found = hardware.value(metric.name, params, reference.of)
    if found is not None:
        source = references.source(hardware, found).name
        return Comparison(found=found, source=source, kind=reference.of, warn=reference.warn, fail=reference.fail)
    wanted = reference.or_peak_warn is not None or reference.or_peak_fail is not None
    peak = hardware.value(metric.name, params, "peak") if wanted else None
    if peak is not None:
        return Comparison(
            found=peak,
            source=references.source(hardware, peak).name,
            kind="peak",
            stands_in=True,
            warn=reference.or_peak_warn,
            fail=reference.or_peak_fail,
        )
    return Comparison(why_none=f"{hardware.key} has no {reference.of} value for this")


def by_reference(value: float, against: Comparison, metric: Metric) -> Judged:
    """Against what this kind of accelerator can do. Without a reference it is not measured, never passed."""
    found, warn, fail = against.found, against.warn, against.fail
    if found is None:
        why = against.why_none
        return Judged(layer="reference", result="not_measured", expected=why, reason="no_reference", detail=why)
    share = share_of(value, found.value, metric)
    result = _by_share(share, warn, fail)
    wanted = (fail if result == "fail" else warn or fail) or 0.0
    threshold = found.value / wanted if metric.better == "lower" else found.value * wanted
    return Judged(
        layer="reference",
        result=result,
        expected=_share_in_words(wanted, against.kind, found.value, metric.unit, against.source),
        threshold=threshold,
        share=None if against.stands_in else share,  # shares of unlike things make no index
    )


@lru_cache(maxsize=1024)
def _share_in_words(share: float, kind: str, reference: float, unit: str, source: str) -> str:
    return f"at least {percent(share)} of the {kind} {figure(reference, unit)} ({source})"


def by_maximum(value: float, best: float | None, key: str, metric: Metric) -> Judged:
    """A link against the most that its device says it can: below it, lanes or links are down or a slower rate is in
    use."""
    if best is None:
        why = f"{key} was not recorded"
        return Judged(layer="reference", result="not_measured", expected=why, reason="not_returned", detail=why)
    wanted = f"{figure(best, metric.unit)}, the most that the device can"
    if best <= 0:
        why = f"the device says that it has no {metric.unit}"
        return Judged(layer="reference", result="not_measured", expected=why, reason="no_reference", detail=why)
    return Judged(layer="reference", result="pass" if value >= best else "fail", expected=wanted, threshold=best)


def by_baseline(  # both values, each with its number
    value: Value,
    number: float,
    baseline: Baseline,
    before: Before,
    metric: Metric,
    *,
    others: Sequence[float],
    once: bool,
) -> Judged:
    """Against an earlier run: worse by the share that matters, by more than noise, and again in a retest.

    `others` are the values of the other attempts; `once`: the figure is of no single node or spans minutes, so that its
    samples stand for a retest.
    """
    told = against(value, number, before, metric)
    if told is None or before.value is None or before.value.value is None:
        why = before.why_none or "the baseline's value is not above 0"
        return Judged(layer="baseline", result="not_measured", expected=why, reason="no_reference", detail=why)
    result = _by_share(told.share, baseline.warn, baseline.fail)
    wanted = (baseline.fail if result == "fail" else baseline.warn or baseline.fail) or 0.0
    known = before.value.value
    judged = Judged(
        layer="baseline",
        result=result,
        expected=f"at least {percent(wanted)} of the baseline's {figure(known, metric.unit)}",
        threshold=known / wanted if metric.better == "lower" and wanted else known * wanted,
        detail="" if result == "pass" else in_words(told, known, metric.unit) + suspected(before.suspects),
    )
    hardest = baseline.fail or baseline.warn or 0.0
    if told.hides(hardest):
        return msgspec.structs.replace(
            judged, result="not_measured", reason="no_power", detail=_blind(told, 1 - hardest)
        )
    if result == "pass" or not told.worse:
        return msgspec.structs.replace(judged, result="pass", detail="")
    shares = [other.share for one in others if (other := against(value, one, before, metric))]
    again = any(_by_share(share, baseline.warn, baseline.fail) == "fail" for share in shares)
    if result == "fail" and not again and not once:
        return msgspec.structs.replace(
            judged, result="not_measured", reason="not_retested", outlier=True, detail=f"{judged.detail}; seen once"
        )
    return msgspec.structs.replace(judged, outlier=True)


def _blind(told: Against, change: float) -> str:
    enough = told.samples_to_see(change)
    more = (
        f"{counted(enough, 'sample')} like these, here and in the baseline, would be enough"
        if enough
        else ("what differs from run to run hides it, and only more runs would tell")
    )
    return (
        f"against the baseline only a change of {percent(round(told.margin, 3))} would show, not one of "
        f"{percent(round(change, 3))}: {more}"
    )


def _by_share(share: float, warn: float | None, fail: float | None) -> Result:
    return "fail" if fail and not share >= fail else "warn" if warn and not share >= warn else "pass"


def by_majority(value: Scalar, uniform: Uniform, everywhere: Counter[Scalar]) -> Judged:
    """A fact that should be the same on all: who has another value than most deviates.

    With a tie for the first place nobody can be named: all deviate.
    """
    (common, times), *others = everywhere.most_common(2)
    tied = bool(others) and others[0][1] == times
    alike = len(everywhere) == 1 or (value == common and not tied)
    expected = "the same everywhere" if tied else f"{common}, as on {times} of {everywhere.total()}"
    return Judged(layer="peers", result="pass" if alike else uniform.result, expected=expected)
