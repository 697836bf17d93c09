"""What a finding rests on: its samples, trials and logs, and its value among its peers."""

from collections.abc import Iterable, Sequence

from markupsafe import Markup

from ..evidence import Run, parse_subject
from ..scoring.verdict import Finding
from .charts import Line, peers
from .measured import Group, Measured, Value, params_label
from .numbers import figure, significant
from .plain_text import listed, printable
from .spread import dot_of
from .tables import reason_words


def details(measured: Measured, each: Finding, names: Sequence[str], values: Group | None) -> Iterable[tuple[str, str]]:
    """Pairs of a word and what it stands for, in the order a reader asks."""
    if len(names) > 1:
        yield "Subjects", printable(listed(names, 64), 4000)
    if each.reason:
        yield "Why", printable(reason_words(each.reason)[0])
    if each.detail:
        yield "Detail", printable(each.detail)
    if each.metric:
        params = f" ({params_label(each.params)})" if each.params else ""
        yield "Metric", f"{printable(each.metric, 128)}{params}"
    if each.first_observed is not None:
        yield "First attempt", figure(each.first_observed, each.unit)
    own = _own(each, values)
    if own and values:
        yield "Samples", _samples(own, values.metric.unit)
        yield from _taken(own)
    if each.evidence:
        yield "Trials", printable(listed(each.evidence, 8), 600)
        logs = _logs(measured.run, each.evidence)
        if logs:
            yield "Logs", printable(listed(logs, 4), 600)
    yield "Required", "yes, by the policy for this access tier" if each.required else "no"
    if each.excludes:
        yield "Taking out", f"{each.excludes} would cure it"


def _logs(run: Run, trials: Sequence[str]) -> list[str]:
    """The names of the logs that these trials left in the run directory."""
    folder = run.path / "logs"
    if not folder.is_dir() or folder.is_symlink():
        return []
    names = sorted(entry.name for entry in folder.iterdir())
    return [f"logs/{name}" for name in names if name.startswith(tuple(trials))]


def _samples(own: Value, unit: str) -> str:
    record, numbers = own.measurement, own.measurement.numbers()
    count = record.count or len(numbers)
    if len(numbers) == 1:
        return f"one value, {figure(numbers[0], unit)}"
    told = f"{count:,} samples from {figure(min(numbers), unit)} to {figure(max(numbers), unit)}"
    if record.samples is None:
        return told
    first = ", ".join(significant(value) for value in numbers[:10])
    return f"{told}; the first: {first}{', …' if len(numbers) > 10 else ''}"


def _taken(own: Value) -> Iterable[tuple[str, str]]:
    record = own.measurement
    if record.start and record.end:
        yield "Measured", f"{record.start:%Y-%m-%d %H:%M:%S} to {record.end:%H:%M:%S} UTC, attempt {record.attempt}"


def group_of(measured: Measured, each: Finding) -> Group | None:
    """The values of the same metric and params that hold the finding's own, or None."""
    groups = measured.groups(each.metric) if each.metric else []
    return next((group for group in groups if group.params == each.params and _own(each, group)), None)


def _own(each: Finding, values: Group | None) -> Value | None:
    return next((value for value in values.values if value.subject == each.subject), None) if values else None


def among_peers(each: Finding, values: Group) -> Markup | None:
    """The finding's value drawn among its peers, or None where it has none."""
    if len(values.values) < 2:
        return None
    unit = values.metric.unit
    several = len({name for value in values.values for name in nodes_of(value.subject)}) > 1
    marks = [dot_of(value, {each.subject}, several=several) for value in values.values]
    same_unit = each.threshold is not None and each.unit == unit
    threshold = (
        Line(value=each.threshold or 0.0, label=f"demanded {figure(each.threshold, unit)}") if same_unit else None
    )
    middle = figure(values.median, unit)
    label = f"{each.subject} at {figure(each.observed, each.unit)} among {len(marks) - 1} peers, median {middle}"
    return peers(marks, unit=unit, threshold=threshold, label=label)


def nodes_of(subject: str) -> tuple[str, ...]:
    """The nodes a subject belongs to; none for what is no subject."""
    try:
        return parse_subject(subject).nodes
    except ValueError:
        return ()
