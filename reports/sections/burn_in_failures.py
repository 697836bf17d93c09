"""How often nodes failed here, against what was promised, what projections assume, and what others published."""

from ...references.failure_rates import PUBLISHED_RATES
from ...scoring.statistics import PLAUSIBLE_RATES, PRIOR_RATE
from ...scoring.verdict import Reliability, Verdict
from ..charts import Line
from ..layout import Chart, Part
from ..numbers import number_of, significant, span
from ..rates import Rate, rates

UNIT = "per 1,000 node-days"
_OURS = "this run, 95 %"


def failures(verdict: Verdict) -> Part | None:
    """The failure rate with its exact bounds; None where no time was observed, or too short a time to say anything."""
    seen = verdict.reliability
    if not seen.rate_high or seen.node_days <= 0 or (not seen.failures and seen.rate_high > 1):
        return None
    title = _title(seen)
    promised = _promised(verdict)
    rows = [_ours(seen, promised), assumed(), *published()]
    line = Line(value=promised * 1000, label=f"promised {significant(promised * 1000)}") if promised else None
    axis = f"failures {UNIT}"
    svg = rates(rows, line=line, axis=axis, label=f"{title}. {'; '.join(f'{row.name}: {row.shown}' for row in rows)}.")
    sources = ", ".join(dict.fromkeys(each.source for each in PUBLISHED_RATES))
    note = f"Published: all causes, nodes of eight accelerators ({sources})."
    return Part(title="How often nodes fail", answer=_answer(seen), chart=Chart(title=title, svg=svg, note=note))


def _answer(seen: Reliability) -> str:
    told = f"{number_of(seen.failures, 'failure') if seen.failures else 'No failure'} was" if seen.failures < 2 else ""
    told = told or f"{seen.failures:,} failures were"
    days = f"{significant(seen.node_days)} node-days"
    if seen.projected_rate is None:
        return f"{told} seen in {days}."
    projected = f"Projections assume {significant(seen.projected_rate * 1000)} {UNIT}"
    return f"{told} seen in {days}. {projected}: what was seen, weighted with what large clusters report."


def _title(seen: Reliability) -> str:
    shown = span(_thousand(seen.rate_low), _thousand(seen.rate_high))
    low, high = seen.rate_low or 0.0, seen.rate_high or 0.0
    if low > PLAUSIBLE_RATES[1]:
        return f"Nodes fail more often than in published clusters: {shown} {UNIT}"
    if high <= PLAUSIBLE_RATES[1]:
        return f"Nodes fail no more often than in published clusters: {shown} {UNIT}"
    return f"Too few node-days to tell from published clusters: {shown} {UNIT}"


def _ours(seen: Reliability, promised: float | None) -> Rate:
    worst = promised or PLAUSIBLE_RATES[1]
    return Rate(
        name=_OURS,
        shown=span(_thousand(seen.rate_low), _thousand(seen.rate_high)),
        low=_thousand(seen.rate_low),
        high=_thousand(seen.rate_high),
        ours=True,
        marked=(seen.rate_low or 0.0) > worst,
    )


def assumed() -> Rate:
    """What projections assume before anything was seen."""
    low, high = (1000 * rate for rate in PLAUSIBLE_RATES)
    shown = f"{significant(PRIOR_RATE * 1000)}, plausible {span(low, high)}"
    return Rate(name="assumed before", shown=shown, value=PRIOR_RATE * 1000, low=low, high=high)


def published() -> list[Rate]:
    """What others published, the least first."""
    found = sorted(PUBLISHED_RATES, key=lambda each: each.rate)
    return [Rate(name=each.name, shown=significant(each.rate * 1000), value=each.rate * 1000) for each in found]


def _promised(verdict: Verdict) -> float | None:
    """The failure rate of the contract: the inverse of the promised node-days between failures."""
    between = (each for each in verdict.findings if each.layer == "contract" and each.unit == "node-days")
    found = {each.threshold for each in between if each.threshold}
    return 1 / found.pop() if len(found) == 1 else None


def _thousand(rate: float | None) -> float | None:
    return 1000 * rate if rate else None
