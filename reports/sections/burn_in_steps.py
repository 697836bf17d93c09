"""The time of training steps over the burn-in, and what happened meanwhile."""

import statistics
from collections.abc import Sequence

from msgspec import Struct

from ...evidence import Event
from ..curves import Happened, series
from ..layout import Chart
from ..measured import Group, Measured
from ..numbers import figure, roughly, span
from ..plain_text import printable
from ..spread import spread_chart

_MOST_POINTS = 240
_MOST_EVENTS = 60
_GRAVE = frozenset({"warning", "error", "fatal"})


class _Clock(Struct, frozen=True, kw_only=True):
    """When steps ran: the first began at `start`, seconds since 1970; each took `step` seconds in the mean."""

    start: float
    step: float


def step_chart(measured: Measured, steps: Group) -> Chart:
    """Step time over hours where it is known when they ran, else over steps; only the ranks with the range of their
    quantiles where the samples are not there."""
    columns = [each.measurement.samples for each in steps.values]
    length = min((len(column) for column in columns if column), default=0)
    if length < 3 or not all(columns):
        return spread_chart(steps)
    over_ranks = [sorted(column[place] for column in columns if column) for place in range(length)]
    points, clock = banded(over_ranks), _clock(steps, length)
    happened = _happened(measured, clock, length) if clock else []
    title = _title(points) + _counted(len(happened))
    unit, scale = _scale(clock, length)
    svg = series(
        [(place * scale, low, middle, high) for place, low, middle, high in points],
        x=unit,
        y="step time, s",
        label=f"{title}; table below.",
        happened=[Happened(place=each.place * scale, words=each.words) for each in happened[:_MOST_EVENTS]],
    )
    note = "Line: median over the ranks. Band: 5 to 95% of ranks and steps."
    return Chart(title=title, svg=svg, note=note + (" Ticks: warnings and errors of the run." if happened else ""))


def _clock(steps: Group, length: int) -> _Clock | None:
    times = [(each.measurement.start, each.measurement.end) for each in steps.values]
    starts, ends = [start for start, _ in times if start], [end for _, end in times if end]
    if not starts or not ends or max(ends) <= min(starts):
        return None
    return _Clock(start=min(starts).timestamp(), step=(max(ends) - min(starts)).total_seconds() / length)


def _scale(clock: _Clock | None, length: int) -> tuple[str, float]:
    """The axis in words, and what a step is on it."""
    if clock is None:
        return "step", 1.0
    seconds = clock.step * length
    if seconds > 2 * 3600:
        return "hours since the burn-in began", clock.step / 3600
    if seconds > 300:
        return "minutes since the burn-in began", clock.step / 60
    return "seconds since the burn-in began", clock.step


def _happened(measured: Measured, clock: _Clock, length: int) -> list[Happened]:
    """Warnings and errors while the steps ran, placed by step."""
    found = []
    for event in measured.run.events:
        place = (event.time.timestamp() - clock.start) / clock.step
        if event.severity in _GRAVE and 0 <= place <= length:
            found.append(Happened(place=place, words=_words(event)))
    return found


def _words(event: Event) -> str:
    return printable(f"{event.time:%H:%M:%S} UTC, {event.subject}: {event.kind.replace('_', ' ')}", 120)


def _counted(events: int) -> str:
    return f"; {events:,} {'event' if events == 1 else 'events'} meanwhile" if events else ""


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
