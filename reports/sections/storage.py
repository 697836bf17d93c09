"""Storage: how long a checkpoint takes and where the time goes, and what the filesystem gives."""

import statistics
from collections.abc import Sequence

from ...scoring.verdict import Verdict
from ..bars import PART_CLASSES, stacked
from ..layout import Chart, Section
from ..measured import Group, Measured, Value
from ..numbers import figure, number_of, roughly
from ..plain_text import listed
from ..tables import aggregates, gaps, worst
from .judged import failing, nonzero, not_measured

PARTS = ("stage", "write", "sync", "commit")
_STALL = 2.0  # a save this many times the median is a stall
_MOST_SAVES = 40


def storage(measured: Measured, verdict: Verdict) -> Section:
    """The section on checkpoints and filesystems."""
    main = measured.main("checkpoint.save")
    flagged = failing(verdict, "checkpoint.") | failing(verdict, "filesystem.")
    tables = [
        aggregates(measured, measured.metrics("checkpoint."), caption="Checkpoint"),
        aggregates(measured, measured.metrics("filesystem."), caption="Filesystem, by fio"),
    ]
    if main and len(main.values) > 1:
        tables.append(worst(main, marked=flagged))
    return Section(
        anchor="storage",
        title="Storage",
        answer=_answer(measured, main),
        chart=_chart(measured, main) if main else None,
        tables=tuple(table for table in tables if table),
        gaps=gaps(measured.missing("checkpoint.", "filesystem.")),
        method=(
            "Saves by torch.distributed.checkpoint of incompressible data, timed from the barrier to the last rank's "
            "fsync and the commit; each part is that of the slowest rank.",
            "What is read back is compared by hash with what was saved.",
            "fio writes sequentially in 16 MiB blocks, all ranks at once; its final fsync counts.",
        ),
        source=("MLPerf Storage", "https://github.com/mlcommons/storage"),
        cannot_tell="Whether the figures hold with all nodes writing at once, or with other tenants at work.",
    )


def _answer(measured: Measured, main: Group | None) -> str:
    if main is None:
        written = measured.main("filesystem.write_rate")
        if written is None:
            return not_measured(measured, "checkpoint.", "filesystem.")
        return f"fio writes {figure(written.median, written.metric.unit)} with fsync; checkpoints were not measured."
    slowest = main.worst
    count = slowest.measurement.count or len(slowest.measurement.numbers())
    told = f"A save takes {figure(slowest.value, 's')} (median of {number_of(count, 'save')}, {slowest.subject})"
    rate = measured.main("checkpoint.write_rate")
    if rate:
        told += f", {figure(rate.worst.value, rate.metric.unit)} for all ranks together"
    return f"{told}. {_right(measured)}"


def _right(measured: Measured) -> str:
    looked = nonzero(measured, "checkpoint.hash_mismatches")
    if looked is None:
        return "Whether it reads back unchanged was not measured."
    return f"It reads back changed on {listed(looked[1])}." if looked[1] else "It reads back unchanged, by hash."


def _chart(measured: Measured, main: Group) -> Chart | None:
    drawn = [(bars, each) for each in main.worst_first if (bars := _bars(measured, each))]
    if not drawn:
        return None
    bars, slowest = max(drawn, key=lambda one: len(_stalls(one[0])))  # of equals the slowest
    title = _title(bars, slowest, several=len(main.values) > 1)
    shown = bars[:_MOST_SAVES]
    stalls = frozenset(place for place in _stalls(bars) if place < len(shown))
    svg = stacked(shown, PARTS, unit="s", axis="seconds", label=f"{title}; table below.", marked=stalls)
    left = f" The first {_MOST_SAVES} of {len(bars)} saves." if len(bars) > _MOST_SAVES else ""
    note = "Each part is its slowest rank's, so parts can add up to more than the save." + left
    return Chart(title=title, svg=svg, note=note, key=tuple(zip(PART_CLASSES, PARTS, strict=True)))


def _bars(measured: Measured, save: Value) -> list[tuple[float, ...]]:
    """The parts of each save of one filesystem, where every part has a sample for every save."""
    columns = [_samples(measured, f"checkpoint.{part}", save) for part in PARTS]
    lengths = {len(column) for column in columns}
    return list(zip(*columns, strict=True)) if len(lengths) == 1 and lengths != {0} else []


def _samples(measured: Measured, name: str, save: Value) -> Sequence[float]:
    for group in measured.groups(name):
        for each in group.values:
            if each.subject == save.subject and group.params == save.measurement.params:
                return each.measurement.samples or ()
    return ()


def _stalls(bars: Sequence[Sequence[float]]) -> list[int]:
    """The places of the saves that took over twice the median."""
    totals = [sum(bar) for bar in bars]
    limit = _STALL * statistics.median(totals)
    return [place for place, total in enumerate(totals) if total > limit]


def _title(bars: Sequence[Sequence[float]], save: Value, *, several: bool) -> str:
    totals = [sum(bar) for bar in bars]
    stalls = len(_stalls(bars))
    sums = {part: sum(bar[place] for bar in bars) for place, part in enumerate(PARTS)}
    largest = max(sums, key=lambda part: sums[part])
    where = f"{save.subject}: " if several else ""
    if stalls:
        return f"{where}{number_of(stalls, 'save')} of {len(bars)} took over twice the median"
    share = sums[largest] / sum(totals) if sum(totals) else 0.0
    return f"{where}{roughly(share)} of a save is {_PART_WORDS[largest]}"


_PART_WORDS = {"stage": "staging", "write": "writing", "sync": "fsync", "commit": "the commit"}
