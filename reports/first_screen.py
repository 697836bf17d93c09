"""The first screen, for the one who signs: the verdict, why, what it rests on, four figures, and each category."""

from collections import Counter
from collections.abc import Iterable
from typing import get_args

from msgspec import Struct

from ..evidence import Run
from ..scoring.verdict import Category, Finding, Interval, Result, Verdict, VerdictWord
from .measured import Measured, params_label
from .numbers import dollars, figure, number_of, percent, significant, span
from .plain_text import listed, natural, printable
from .rental import rent_a_month
from .spread import noun

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
        _cost(run, verdict),
    )


def categories(verdict: Verdict) -> tuple[CategoryState, ...]:
    """How each category came out, in the order of the page. One without a check is not judged: that is no pass."""
    by_category = {category: [e for e in verdict.findings if e.category == category] for category in get_args(Category)}
    return tuple(_category_state(category, found) for category, found in by_category.items())


def tally(findings: Iterable[Finding]) -> str:
    """Findings by result: 2 fail, 1 warn, 3 not measured."""
    count = Counter(each.result for each in findings)
    order: tuple[Result, ...] = ("fail", "not_measured", "warn")
    told = [f"{count[result]:,} {RESULT_WORDS[result]}" for result in order if count[result]]
    return " · ".join(told) or "none"


def _category_state(category: Category, found: list[Finding]) -> CategoryState:
    """Fail before not measured before warn before pass; what was not required and not seen is counted beside a pass."""
    if not found:
        name = CATEGORY_WORDS[category]
        return CategoryState(name=name, anchor=category, result="not_measured", word="no check")
    missing = [each for each in found if each.result == "not_measured"]
    required = [each for each in missing if each.required]
    results = {each.result for each in found}
    state: Result = "pass"
    if "fail" in results:
        state = "fail"
    elif required or results == {"not_measured"}:
        state = "not_measured"
    elif "warn" in results:
        state = "warn"
    unseen = f" ({len(missing)} unseen)" if missing and state in ("pass", "warn") else ""
    return CategoryState(
        name=CATEGORY_WORDS[category], anchor=category, result=state, word=RESULT_WORDS[state] + unseen
    )


def _utilisation(measured: Measured, verdict: Verdict) -> Figure:
    mfu = verdict.economics.mfu
    if mfu is not None and mfu.value is not None:
        demanded = _threshold(verdict, "burn_in.mfu")
        mark = None if demanded is None else demanded * 100
        note = mfu.basis if demanded is None else f"demanded {percent(demanded)}; {mfu.basis}"
        return Figure(
            title="Model FLOPs utilisation",
            value=percent(mfu.value),
            interval=_interval(mfu),
            bar=Bar(value=mfu.value * 100, low=_hundred(mfu.low), high=_hundred(mfu.high), mark=mark),
            note=note,
        )
    return _matmul_instead(measured, verdict)


def _matmul_instead(measured: Measured, verdict: Verdict) -> Figure:
    group = measured.main("matmul.tflops")
    lacks = _missing(verdict, ("mfu", "utilisation", "peak", "reference")) or "MFU needs a reference for this hardware."
    if group is None:
        return Figure(title="Model FLOPs utilisation", value="not measured", note=lacks)
    several, least, most = len(group.values) > 1, min(group.numbers), max(group.numbers)
    return Figure(
        title=f"Matrix products, a {noun(group)}",
        value=figure(group.median, group.metric.unit),
        interval=span(least, most) if several and significant(least) != significant(most) else "",
        note=f"{params_label(group.params)}. {lacks}",
    )


def _goodput(verdict: Verdict) -> Figure:
    goodput, title = verdict.economics.goodput, "Goodput (projected)"
    if goodput is None or goodput.value is None:
        lacks = _missing(verdict, ("goodput",)) or "It needs a measured checkpoint and node-days of burn-in."
        return Figure(title=title, value="not known", note=lacks)
    bar = Bar(value=goodput.value * 100, low=_hundred(goodput.low), high=_hundred(goodput.high))
    note = _failures(verdict) or goodput.basis
    return Figure(title=title, value=percent(goodput.value), interval=_interval(goodput), bar=bar, note=note)


def _failures(verdict: Verdict) -> str:
    """What the node-days allow to say of failures; a bound of more than one a node and day says nothing."""
    seen = verdict.reliability
    if seen.rate_high is None:
        return ""
    if seen.rate_high > 1:
        prior = f"{figure((seen.projected_rate or 0) * 1000)} failures per 1,000 node-days are assumed"
        return f"{prior}: {figure(seen.node_days)} observed are too few to tell"
    return f"failures at most {figure(seen.rate_high, '1/node-day')}"


def _money(run: Run, verdict: Verdict) -> Figure:
    cost, title = verdict.economics.usd_per_pflop_day, "Money per useful PFLOP-day"
    if cost is not None and cost.value is not None:
        interval = f"{span(cost.low, cost.high)}" if cost.low is not None else ""
        return Figure(title=title, value=dollars(cost.value), interval=interval, note=cost.basis)
    if run.header.price_per_gpu_hour is None:
        return Figure(title=title, value="no price", note="Give --price USD_PER_GPU_HOUR to hwlottery run.")
    lacks = _missing(verdict, ("money", "usd", "pflop")) or "It needs MFU and goodput."
    return Figure(title=title, value="not known", note=lacks)


def _cost(run: Run, verdict: Verdict) -> Figure:
    found = [each for each in verdict.findings if each.result != "pass"]
    rent = rent_a_month(run, verdict.exclude)
    if rent:
        note = f"rent of {listed(sorted(verdict.exclude, key=natural), 4)} · {tally(found)}"
        return Figure(title="What the findings cost", value=f"{dollars(rent)} a month", note=note)
    checks = len({each.check for each in found})
    value = number_of(len(found), "finding") if found else "no finding"
    note = f"{tally(found)}, of {number_of(checks, 'check')}" if found else "Every check passed."
    return Figure(title="Findings", value=value, note=note)


def _threshold(verdict: Verdict, name: str) -> float | None:
    """The one threshold of a metric, or None where there is none or several."""
    found = [e.threshold for e in verdict.findings if e.metric == name and e.threshold is not None]
    return found[0] if found and len(set(found)) == 1 else None


def _missing(verdict: Verdict, words: tuple[str, ...]) -> str:
    """The first line of what the economics lack that speaks of one of the words."""
    found = (line for line in verdict.economics.missing if any(word in line.lower() for word in words))
    return printable(next(found, ""), 200)


def _interval(shown: Interval) -> str:
    if shown.low is None and shown.high is None:
        return ""
    told = span(shown.low, shown.high, shown.unit)
    return "" if told == figure(shown.value, shown.unit) else told


def _hundred(share: float | None) -> float | None:
    return None if share is None else share * 100
