"""Burn-in and reliability: a small model trained on every rank, and what that says of failures."""

import statistics
from collections.abc import Sequence

from ...scoring.verdict import Verdict
from ..curves import series
from ..layout import Chart, Section
from ..measured import Group, Measured
from ..numbers import figure, number_of, roughly, significant, span
from ..plain_text import listed
from ..spread import noun, spread_chart, spread_title
from ..tables import aggregates, gaps, worst
from .judged import failing, nonzero, not_measured

_MOST_POINTS = 240
_METRICS = ("burn_in.", "reliability.", "goodput")


def burn_in(measured: Measured, verdict: Verdict) -> Section:
    """The section on the burn-in."""
    steps = measured.main("burn_in.step")
    compute = measured.main("burn_in.compute")
    flagged = failing(verdict, "burn_in.")
    tables = [aggregates(measured, [name for prefix in _METRICS for name in measured.metrics(prefix)])]
    if compute:
        tables.append(worst(compute, marked=flagged))
    return Section(
        anchor="burn_in",
        title="Burn-in and reliability",
        answer=_answer(measured, steps, verdict) if steps else not_measured(measured, *_METRICS),
        chart=_chart(steps) if steps else None,
        tables=tuple(table for table in tables if table),
        gaps=gaps(measured.missing(*_METRICS)),
        method=(
            "A GPT-style decoder trained data-parallel on all ranks with a checkpoint on the way. Model FLOPs are "
            "6(N - N_embed) + 12 L d S a token; nothing recomputed is counted.",
            "Compute time is forward and backward of one rank without waiting for others: it shows stragglers.",
            "Parameters are hashed on every rank and compared. Failure rates have exact Poisson bounds at 95%.",
        ),
        source=("torchtitan", "https://github.com/pytorch/torchtitan"),
        cannot_tell="How often it will fail later: a short burn-in bounds the failure rate, it cannot certify one.",
    )


def _answer(measured: Measured, steps: Group, verdict: Verdict) -> str:
    count = max(each.measurement.count or len(each.measurement.numbers()) for each in steps.values)
    told = [
        f"{number_of(len(steps.values), noun(steps))} trained {number_of(count, 'step')} at "
        f"{figure(steps.median, 's')} a step.",
        _stragglers(measured),
        _learned(measured),
        _agreed(measured),
        verdict.reliability.sentence or _rate(verdict),
    ]
    return " ".join(part for part in told if part)


def _stragglers(measured: Measured) -> str:
    compute = measured.main("burn_in.compute")
    return f"Compute time: {spread_title(compute)}." if compute and len(compute.values) > 1 else ""


def _learned(measured: Measured) -> str:
    drop = measured.main("burn_in.loss_drop")
    if drop is None:
        return "Whether the loss fell was not measured."
    value = drop.values[0].value
    return f"The loss fell by {significant(value)} nats." if value > 0 else "The loss did not fall."


def _agreed(measured: Measured) -> str:
    looked = nonzero(measured, "burn_in.hash_disagreements")
    if looked is None:
        return "Whether the replicas stayed equal was not measured."
    return f"Replicas came apart on {listed(looked[1])}." if looked[1] else "All replicas stayed equal."


def _rate(verdict: Verdict) -> str:
    shown = verdict.reliability
    seen = f"{number_of(shown.failures, 'failure')} in {significant(shown.node_days)} node-days"
    if shown.rate_high is None:
        return f"{seen}."
    return f"{seen}: {span(shown.rate_low or None, shown.rate_high, '1/node-day')} (95%)."


def _chart(steps: Group) -> Chart:
    """Step time over steps where the samples are there; else the ranks with the range of their quantiles."""
    columns = [each.measurement.samples for each in steps.values]
    length = min((len(column) for column in columns if column), default=0)
    if length < 3 or not all(columns):
        return spread_chart(steps)
    over_ranks = [sorted(column[place] for column in columns if column) for place in range(length)]
    points = banded(over_ranks)
    title = _title(points)
    svg = series(points, x="step", y="step time, s", label=f"{title}; table below.")
    return Chart(title=title, svg=svg, note="Line: median over the ranks. Band: 5 to 95% of ranks and steps.")


def banded(steps: Sequence[Sequence[float]]) -> list[tuple[float, float, float, float]]:
    """(step, 5%, median, 95%) at no more than 240 places: neighbouring steps are pooled."""
    width = -(-len(steps) // _MOST_POINTS)
    pools = [(start, steps[start : start + width]) for start in range(0, len(steps), width)]
    return [(start + 1.0, *_band([value for step in pool for value in step])) for start, pool in pools]


def _band(values: Sequence[float]) -> tuple[float, float, float]:
    ordered = sorted(values)
    return (
        ordered[int(0.05 * (len(ordered) - 1))],
        statistics.median(ordered),
        ordered[-1 - int(0.05 * (len(ordered) - 1))],
    )


def _title(points: Sequence[tuple[float, float, float, float]]) -> str:
    """Whether steps got slower or faster from the first third to the last, by more than they vary in between."""
    medians = [point[2] for point in points]
    third = max(1, len(medians) // 3)
    first, last = statistics.median(medians[:third]), statistics.median(medians[-third:])
    low, middle, high = _band(medians)
    if abs(last - first) > max(0.03 * first, (high - low) / 2):
        word = "rises" if last > first else "falls"
        return f"Step time {word} by {roughly(abs(last / first - 1))} from {figure(first, 's')} to {figure(last, 's')}"
    if high - low < 0.05 * middle:
        return f"Step time stays at {figure(middle, 's')}"
    return f"Step time is {figure(middle, 's')}, 5 to 95% of the steps {span(low, high, 's')}"
