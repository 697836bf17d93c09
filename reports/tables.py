"""Tables of figures: aggregates by metric, and the worst of many."""

from collections.abc import Iterable, Sequence

from ..evidence import NotMeasured
from .layout import Cell, Column, Gap, Table, number, text
from .measured import Group, Measured, Value, labelled, params_label, params_order
from .numbers import figure, roughly, significant
from .plain_text import listed, natural, printable
from .spread import lagging

MOST_ROWS = 50
_REASONS: dict[str, tuple[str, str]] = {
    "skipped_by_profile": ("the profile leaves it out", "run a profile that includes it"),
    "tool_missing": ("a tool it needs is not installed", "install the tool and run again"),
    "unsupported": ("this device or platform cannot do it", "run where the device supports it"),
    "timeout": ("its deadline passed", "look into the trial's log, then run again"),
    "died": ("a rank, worker or node ended during the trial", "look into the trial's log, then run again"),
    "raised": ("the probe ended with an error", "look into the trial's log, then run again"),
    "parse_error": ("the tool's output could not be read", "keep the log and report it with the tool's version"),
    "not_finite": ("the value was NaN or infinite", "run it again; if it repeats, the device is at fault"),
    "closed_to_tenant": ("closed to the tenant: no permission", "ask the provider for it, or for the access it needs"),
    "no_reference": ("no reference for this hardware", "add a reference with its source"),
    "not_returned": ("the trial ended without this value", "look into the trial's log, then run again"),
    "interrupted": ("the run was stopped first", "go on with --resume"),
}


def aggregates(measured: Measured, names: Iterable[str], *, caption: str = "All figures") -> Table | None:
    """One row a metric and params: how many subjects, least, median, most, and who is worst. None without any."""
    groups = [group for name in names for group in sorted(measured.groups(name), key=lambda g: params_order(g.params))]
    if not groups:
        return None
    alone = all(len(group.values) == 1 for group in groups)
    heads = ("metric", "params", "subjects", "samples", "least", "median", "most", "spread", "worst")
    labels = {params_label(group.params) for group in groups}
    if len(labels) == 1 and groups[0].params:
        caption = f"{caption}: {labels.copy().pop()}"
    left_out = {head for head, out in (("params", len(labels) == 1), ("subjects", alone)) if out}
    keep = [place for place, head in enumerate(heads) if head not in left_out]
    columns = tuple(
        Column(title="subject" if alone and heads[place] == "worst" else heads[place], numeric=2 <= place <= 7)
        for place in keep
    )
    rows = tuple(tuple(row[place] for place in keep) for row in map(_aggregate, groups))
    return Table(caption=caption, columns=columns, rows=rows, note=_over_what(groups))


def _over_what(groups: Sequence[Group]) -> str:
    """What least and most range over, where that is not the subjects alone."""
    alone = [len(group.values) == 1 for group in groups]
    if all(alone):
        return "Least and most are over the samples."
    return "Least and most are over the subjects; of one subject, over its samples." if any(alone) else ""


def worst(group: Group, *, marked: frozenset[str] = frozenset()) -> Table:
    """The subjects of one group, the worst first, at most 50; folded where none stands out."""
    shown = group.worst_first[:MOST_ROWS]
    stands_out = marked | {each.subject for each in lagging(group)}
    columns = ("subject", "value", "against the median", "samples", "least", "most", "trial")
    left_out = len(group.values) - len(shown)
    return Table(
        caption=f"By subject, the worst first: {labelled(group)}",
        columns=tuple(Column(title=head, numeric=place in range(1, 6)) for place, head in enumerate(columns)),
        rows=tuple(_subject_row(group, each, stands_out) for each in shown),
        note=f"{left_out:,} more: `hwlottery export RUN --format csv`." if left_out > 0 else "",
        folded=not any(each.subject in stands_out for each in shown),
    )


def gaps(records: Sequence[NotMeasured]) -> tuple[Gap, ...]:
    """What is missing, one line a reason and set of subjects, the metrics gathered."""
    whom: dict[tuple[str, str, str], list[str]] = {}
    for record in records:
        whom.setdefault((record.metric, record.reason, record.detail), []).append(record.subject)
    like: dict[tuple[str, str, tuple[str, ...]], list[str]] = {}
    for (name, reason, detail), subjects in whom.items():
        like.setdefault((reason, detail, tuple(sorted(set(subjects), key=natural))), []).append(name)
    return tuple(_gap(*key, metrics) for key, metrics in list(like.items())[:MOST_ROWS])


def reason_words(reason: str) -> tuple[str, str]:
    """Why something was not measured, and how to measure it."""
    return _REASONS.get(reason, (reason, "run again"))


def _gap(reason: str, detail: str, subjects: Sequence[str], metrics: Sequence[str]) -> Gap:
    why, remedy = reason_words(reason)
    told = f"{why}: {printable(detail, 300)}" if detail else why
    return Gap(
        metric=printable(listed(metrics, 8), 600), subjects=printable(listed(subjects, 4), 300), why=told, remedy=remedy
    )


def _aggregate(group: Group) -> tuple[Cell, ...]:
    """Least and most are over the subjects; of one subject, over its samples."""
    unit, values = group.metric.unit, group.numbers
    alone = group.values[0] if len(values) == 1 else None
    least, most = (alone.low, alone.high) if alone else (min(values), max(values))
    wide = (most - least) / abs(group.median) if group.median and least != most else None
    samples = sum(each.measurement.count or len(each.measurement.numbers()) for each in group.values)
    return (
        text(group.metric.name, code=True),
        text(params_label(group.params)),
        number(len(values), f"{len(values):,}"),
        number(samples, f"{samples:,}"),
        number(least, figure(least, unit)),
        number(group.median, figure(group.median, unit)),
        number(most, figure(most, unit)),
        number(wide, _spread(least, most, wide)),
        text(group.worst.subject if alone or least != most else "\N{EM DASH}"),
    )


def _spread(least: float, most: float, wide: float | None) -> str:
    """How far least and most are apart: as a share of the median, or as a factor where that is over 100%."""
    if wide is None:
        return "\N{EM DASH}"
    return f"{significant(most / least)} times" if wide > 1 and least > 0 else roughly(wide)


def _subject_row(group: Group, each: Value, marked: frozenset[str]) -> tuple[Cell, ...]:
    unit, record, middle = group.metric.unit, each.measurement, group.median
    away = (each.value - middle) / abs(middle) if middle else None
    count = record.count or len(record.numbers())
    return (
        text(each.subject, tone="fail" if each.subject in marked else ""),
        number(each.value, figure(each.value, unit)),
        number(away, "\N{EM DASH}" if away is None or len(group.values) < 2 else f"{away * 100:+.1f} %"),
        number(count, f"{count:,}"),
        number(each.low, figure(each.low, unit)),
        number(each.high, figure(each.high, unit)),
        text(printable(record.trial or "\N{EM DASH}", 40), code=True),
    )
