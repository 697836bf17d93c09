"""Health beside running work: throttling, memory errors, temperature, what else the machine was doing."""

from ...scoring.verdict import Verdict
from ..layout import Section
from ..measured import Measured
from ..numbers import figure, percent
from ..plain_text import listed
from ..spread import lagging, shows_nothing
from ..tables import aggregates, gaps, worst
from ..telemetry import telemetry_chart
from .health_over_time import over_time
from .judged import failing, judged_chart, nonzero, not_measured

_SHOWN = ("health.throttled", "health.temperature", "health.clock", "health.cpu_steal", "health.foreign_cpu")


def health(measured: Measured, verdict: Verdict) -> Section:
    """The section on health."""
    present = [group for name in _SHOWN if (group := measured.main(name)) and any(group.numbers)]
    main = next((group for group in present if lagging(group)), present[0] if present else None)
    tables = [aggregates(measured, measured.metrics("health."), caption="By metric")]
    if main and len(main.values) > 1:
        tables.append(worst(main, marked=failing(verdict, main.metric.name)))
    parts = over_time(measured)
    chart = None if parts else telemetry_chart(measured.run.path)  # it would read a day of telemetry again
    if chart is None and main and not shows_nothing(main):
        chart = judged_chart(measured, verdict, main)
    return Section(
        anchor="health",
        title="Health",
        answer=_answer(measured) if measured.metrics("health.") else not_measured(measured, "health."),
        chart=chart,
        parts=parts,
        tables=tuple(table for table in tables if table),
        gaps=gaps(measured.missing("health.")),
        method=(
            "Sensors are read beside our own load; counters count as differences around it, never as lifetime totals.",
            "Throttling is the share of readings with a hardware, thermal or power-brake slowdown.",
            "Steal is processor time that the hypervisor gave to others.",
        ),
        cannot_tell="What sensors closed to the tenant would say; they are listed under what could not be seen.",
    )


def _answer(measured: Measured) -> str:
    told = [_errors(measured), _throttled(measured), _warmest(measured), _others(measured)]
    return " ".join(part for part in told if part)


def _errors(measured: Measured) -> str:
    looked = nonzero(measured, "health.ecc_uncorrected")
    if looked is None:
        return ""
    return f"Uncorrected memory errors on {listed(looked[1])}." if looked[1] else "No uncorrected memory error."


def _throttled(measured: Measured) -> str:
    looked = nonzero(measured, "health.throttled")
    if looked is None:
        return "Throttling was not measured."
    group = measured.main("health.throttled")
    if not looked[1] or group is None:
        return "No throttling under load."
    top = group.worst
    share = percent(top.value)
    return f"{top.subject} throttled in {share} of the readings; {len(looked[1])} of {looked[0]} throttled at all."


def _warmest(measured: Measured) -> str:
    group = measured.main("health.temperature")
    return f"The warmest, {group.worst.subject}, reached {figure(group.worst.value, 'C')}." if group else ""


def _others(measured: Measured) -> str:
    steal, foreign = measured.main("health.cpu_steal"), measured.main("health.foreign_cpu")
    words = []
    if steal:
        words.append(f"the hypervisor took up to {percent(steal.worst.value)} of processor time")
    if foreign:
        words.append(f"other processes used up to {figure(foreign.worst.value, 'cores')}")
    return f"Beside our load {' and '.join(words)}." if words else ""
