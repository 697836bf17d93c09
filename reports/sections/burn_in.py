"""Burn-in and reliability: a small model trained on every rank, and what that says of failures."""

from ...scoring.verdict import Verdict
from ..layout import Section
from ..measured import Group, Measured
from ..numbers import figure, number_of, significant, span
from ..plain_text import listed
from ..spread import noun, spread_title
from ..tables import aggregates, gaps, worst
from .burn_in_failures import failures
from .burn_in_steps import step_chart
from .judged import failing, nonzero, not_measured

_METRICS = ("burn_in.", "reliability.", "goodput")


def burn_in(measured: Measured, verdict: Verdict) -> Section:
    """The section on the burn-in."""
    steps = measured.main("burn_in.step")
    compute = measured.main("burn_in.compute")
    flagged = failing(verdict, "burn_in.")
    tables = [
        aggregates(measured, [name for prefix in _METRICS for name in measured.metrics(prefix)], caption="By metric")
    ]
    if compute:
        tables.append(worst(compute, marked=flagged))
    return Section(
        anchor="burn_in",
        title="Burn-in and reliability",
        answer=_answer(measured, steps, verdict) if steps else not_measured(measured, *_METRICS),
        chart=step_chart(measured, steps) if steps else None,
        parts=tuple(part for part in (failures(verdict),) if part and steps),
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
