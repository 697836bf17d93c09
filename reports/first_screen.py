"""The first screen, for the one who signs: the verdict, why, what it rests on, four figures, and each category."""

import statistics
from collections import Counter
from collections.abc import Iterable
from typing import get_args

from msgspec import Struct

from ..evidence import Run
from ..scoring.verdict import Category, Finding, Layer, Result, Verdict, VerdictWord
from .measured import Measured, params_label
from .numbers import below_all, dollars, figure, goodput_span, number_of, percent, span
from .plain_text import printable
from .spread import noun
from .taken_out import out_words, parted

WORDS: dict[VerdictWord, str] = {
    "GO": "GO",
    "CONDITIONAL": "CONDITIONAL",
    "INCONCLUSIVE": "INCONCLUSIVE",
    "NO_GO": "NO-GO",
}
RESULT_WORDS: dict[Result, str] = {"pass": "pass", "warn": "warn", "fail": "fail", "not_measured": "not measured"}
CATEGORY_WORDS: dict[Category, str] = {
    "evidence": "evidence",
    "compute": "compute",
    "memory": "memory",
    "fabric": "fabric",
    "topology": "topology",
    "storage": "storage",
    "burn_in": "burn-in",
    "health": "health",
    "software": "software",
}


_MFU_LAYERS: tuple[tuple[Layer, str], ...] = (("reference", "ref"), ("contract", "demanded"), ("baseline", "accepted"))


class Bar(Struct, frozen=True, kw_only=True):
    """A bar from 0 to 100 with the interval and a mark of what is demanded or expected, all in hundredths."""

    value: float
    low: float | None = None
    high: float | None = None
    mark: float | None = None


class Figure(Struct, frozen=True, kw_only=True):
    """One of the four figures: its value, interval, bar, and in a line what it compares with or what is missing."""

    title: str
    value: str
    qualifier: str = ""  # a word beside the value that says it is none of fact: assumed
    interval: str = ""
    bar: Bar | None = None
    note: str = ""


class CategoryState(Struct, frozen=True, kw_only=True):
    """A category in the line under the figures: its word, how it came out, and where on the page it is told."""

    name: str
    anchor: str
    result: Result
    word: str


def figures(run: Run, measured: Measured, verdict: Verdict) -> tuple[Figure, ...]:
    """The four figures of the first screen."""
    return (
        _utilisation(measured, verdict),
        _goodput(verdict),
        _money(run, verdict),
        _cost(verdict),
    )


def categories(verdict: Verdict) -> tuple[CategoryState, ...]:
    """How each category came out, in the order of the page. One without a check is not judged: that is no pass."""
    by_category: dict[Category, list[Finding]] = {category: [] for category in get_args(Category)}
    for each in verdict.findings:
        by_category[each.category].append(each)
    return tuple(_category_state(category, found, verdict) for category, found in by_category.items())


def tally(findings: Iterable[Finding], verdict: Verdict) -> str:
    """Findings by result: 2 fail, 1 warn, 3 not measured; those on nodes that are taken out are counted apart."""
    remaining, out = parted((each for each in findings if each.result != "pass"), verdict)
    apart = f"{out_words(out, verdict)} ({_by_result(out)})" if out else ""
    return "; ".join(part for part in (_by_result(remaining), apart) if part) or "none"


def _by_result(findings: Iterable[Finding]) -> str:
    count = Counter(each.result for each in findings)
    order: tuple[Result, ...] = ("fail", "not_measured", "warn")
    told = [f"{count[result]:,} {RESULT_WORDS[result]}" for result in order if count[result]]
    return " · ".join(told)


def _category_state(category: Category, found: list[Finding], verdict: Verdict) -> CategoryState:
    """Fail before not measured before warn before pass; what was not required and not seen is counted beside a pass.

    What is missing on nodes that are taken out says nothing of what remains.
    """
    if not found:
        name = CATEGORY_WORDS[category]
        return CategoryState(name=name, anchor=category, result="not_measured", word="no check")
    missing, out = parted((each for each in found if each.result == "not_measured"), verdict)
    required = [each for each in missing if each.required]
    results = {each.result for each in found} - ({"not_measured"} if out and not missing else set())
    state: Result = "pass"
    if "fail" in results:
        state = "fail"
    elif required or results <= {"not_measured"}:
        state = "not_measured"
    elif "warn" in results:
        state = "warn"
    unseen = f" ({len(missing)} unseen)" if missing and state in ("pass", "warn") else ""
    return CategoryState(
        name=CATEGORY_WORDS[category], anchor=category, result=state, word=RESULT_WORDS[state] + unseen
    )


def _utilisation(measured: Measured, verdict: Verdict) -> Figure:
    mfu = verdict.economics.mfu
    if mfu is None or mfu.value is None:
        return _matmul_instead(measured, verdict)
    mark, compared = _compared(verdict)
    return Figure(
        title="Model FLOPs utilisation",
        value=percent(mfu.value),
        interval=_interval(mfu.low, mfu.high, mfu.unit),
        bar=Bar(value=mfu.value * 100, low=_hundred(mfu.low), high=_hundred(mfu.high), mark=_hundred(mark)),
        note="; ".join(part for part in (compared, mfu.basis) if part),
    )


def _compared(verdict: Verdict) -> tuple[float | None, str]:
    """What MFU is compared with: its reference, else what the policy demands, else what products alone reach."""
    for layer, word in _MFU_LAYERS:
        found = _thresholds(verdict, "burn_in.mfu", layer)
        if len(found) == 1:
            (mark,) = found
            return mark, f"{word} {percent(mark)}"
    products = [
        e.observed for e in verdict.findings if e.metric == "matmul.mfu" and e.params.get("phase") == "sustained"
    ]
    numbers = [each for each in products if isinstance(each, float)]
    if not numbers:
        return None, ""
    middle = statistics.median(numbers)
    return middle, f"ceiling {percent(middle)}: matrix products alone"


def _matmul_instead(measured: Measured, verdict: Verdict) -> Figure:
    group = measured.main("matmul.tflops")
    lacks = _missing(verdict, ("mfu", "utilisation", "peak", "reference")) or "MFU needs a reference for this hardware."
    if group is None:
        return Figure(title="Model FLOPs utilisation", value="not measured", note=lacks)
    several, least, most = len(group.values) > 1, min(group.numbers), max(group.numbers)
    return Figure(
        title=f"Matrix products, a {noun(group)}",
        value=figure(group.median, group.metric.unit),
        interval=_interval(least, most) if several else "",
        note=f"{params_label(group.params)}. {lacks}",
    )


def _goodput(verdict: Verdict) -> Figure:
    """Projected goodput; where the node-days cannot bound the failures, it is an assumption and says so."""
    goodput, title = verdict.economics.goodput, "Goodput (projected)"
    if goodput is None or goodput.value is None:
        lacks = _missing(verdict, ("goodput",)) or "It needs a measured checkpoint and node-days of burn-in."
        return Figure(title=title, value="not known", note=lacks)
    interval = "" if goodput.low is None or goodput.high is None else goodput_span(goodput.low, goodput.high)
    bar = Bar(value=goodput.value * 100, low=_hundred(goodput.low), high=_hundred(goodput.high))
    seen, value = verdict.reliability, below_all(goodput.value)
    if _bounds_failures(verdict):
        note = f"failures at most {figure(seen.rate_high, '1/node-day')}"
        return Figure(title=title, value=value, interval=interval, bar=bar, note=note)
    assumed = f"projected with {figure((seen.projected_rate or 0) * 1000)} failures per 1,000 node-days assumed"
    note = f"{assumed}; {figure(seen.node_days)} node-days observed are too few to tell"
    return Figure(title=title, value=value, qualifier="assumed", interval=interval, note=note)


def _bounds_failures(verdict: Verdict) -> bool:
    """Whether the node-days say anything of failures: a bound of more than one a node and day does not."""
    high = verdict.reliability.rate_high
    return high is not None and high <= 1


def _money(run: Run, verdict: Verdict) -> Figure:
    cost, title = verdict.economics.usd_per_pflop_day, "Money per useful PFLOP-day"
    if cost is not None and cost.value is not None:
        note = cost.basis if _bounds_failures(verdict) else f"{cost.basis}; goodput as assumed"
        return Figure(title=title, value=dollars(cost.value), interval=_interval(cost.low, cost.high), note=note)
    if run.header.price_per_gpu_hour is None:
        return Figure(title=title, value="no price", note="Give --price USD_PER_GPU_HOUR to hwlottery run.")
    lacks = _missing(verdict, ("money", "usd", "pflop")) or "It needs MFU and goodput."
    return Figure(title=title, value="not known", note=lacks)


def _cost(verdict: Verdict) -> Figure:
    """The total and the dearest two; without a price, or where nothing can be priced, how many findings there are."""
    found = [each for each in verdict.findings if each.result != "pass"]
    total, costs = verdict.economics.findings_usd_per_month, verdict.economics.findings
    if total:
        dearest = [f"{printable(cost.subject, 40)} {dollars(cost.usd.value or 0.0)}" for cost in costs[:2]]
        more = [f"{len(costs) - 2} more"] if len(costs) > 2 else []
        note = " · ".join([*dearest, *more, tally(found, verdict)])
        return Figure(title="What the findings cost", value=f"{dollars(total)} a month", note=note)
    checks = len({each.check for each in found})
    value = number_of(len(found), "finding") if found else "no finding"
    note = f"{tally(found, verdict)}, of {number_of(checks, 'check')}" if found else "Every check passed."
    return Figure(title="Findings", value=value, note=note)


def _thresholds(verdict: Verdict, name: str, layer: Layer | None) -> set[float]:
    """The thresholds of a metric that one layer set."""
    found = (e for e in verdict.findings if e.metric == name and e.layer == layer)
    return {e.threshold for e in found if e.threshold is not None}


def _missing(verdict: Verdict, words: tuple[str, ...]) -> str:
    """The first line of what the economics lack that speaks of one of the words."""
    found = (line for line in verdict.economics.missing if any(word in line.lower() for word in words))
    return printable(next(found, ""), 200)


def _interval(low: float | None, high: float | None, unit: str = "") -> str:
    """An interval in words; nothing where its ends read the same."""
    if (low is None and high is None) or figure(low, unit) == figure(high, unit):
        return ""
    return span(low, high, unit)


def _hundred(share: float | None) -> float | None:
    return None if share is None else share * 100
