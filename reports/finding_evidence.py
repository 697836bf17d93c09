"""What a finding rests on: its samples, trials and logs, and its value among its peers."""

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime

from markupsafe import Markup

from ..evidence import Run, parse_subject
from ..scoring.verdict import Finding
from .charts import Line, peers
from .log_excerpt import Excerpt, excerpt, log_names
from .measured import Group, Measured, Value, params_label
from .numbers import figure, number_of, significant
from .plain_text import listed, natural, printable
from .spread import dot_of
from .tables import reason_words

MOST_LOGS = 2  # shown with their last lines


def details(
    measured: Measured, group: Sequence[Finding], names: Sequence[str], values: Group | None
) -> Iterable[tuple[str, str]]:
    """Pairs of a word and what it stands for, in the order a reader asks; of several findings, those they share."""
    each = group[0]
    if len(names) > 1:
        yield "Subjects", printable(listed(names, 64), 4000)
    checks = Counter(one.check for one in group)
    if len(checks) > 1:
        yield "Checks", printable(", ".join(f"{name} ({count})" for name, count in checks.items()), 4000)
    if each.reason and len(checks) == 1:
        yield "Why", printable(reason_words(each.reason)[0])
    if each.detail and len(checks) == 1:
        yield "Detail", printable(each.detail)
    if len(checks) == 1:
        yield from _of_one(measured, group, values)


def _of_one(measured: Measured, group: Sequence[Finding], values: Group | None) -> Iterable[tuple[str, str]]:
    """What one check rests on; samples only where it is of one subject."""
    each, alone = group[0], len(group) == 1
    if each.metric:
        params = f" ({params_label(each.params)})" if each.params else ""
        yield "Metric", f"{printable(each.metric, 128)}{params}"
    if each.first_observed is not None and alone:
        yield "First attempt", figure(each.first_observed, each.unit)
    own = _own(each, values)
    if own and values and alone:
        yield "Samples", _samples(own, values.metric.unit)
        yield from _taken(own)
    trials = list(dict.fromkeys(trial for one in group for trial in one.evidence))
    if trials:
        yield "Trials", printable(listed(trials, 8), 600)
    logs = _logs(measured.run, each)
    if logs:
        yield "Logs", printable(listed([f"logs/{name}" for name in logs], 4), 600)
    yield "Required", "yes, by the policy for this access tier" if each.required else "no"
    out = sorted({one.excludes for one in group if one.excludes}, key=natural)
    if out:
        yield "Taking out", f"{listed(out, 8)} would cure it"


def _logs(run: Run, each: Finding) -> list[str]:
    """The logs that a finding's trials left, the subject's own first; where a node was lost, the node's."""
    names = log_names(run.path, each.evidence)
    if not names and (each.reason == "died" or each.category == "evidence"):
        names = log_names(run.path, [f"node-{node}." for node in nodes_of(each.subject)])
    own = each.subject.replace("/", "-")
    return sorted(names, key=lambda name: own not in name)


def excerpts(run: Run, each: Finding) -> tuple[Excerpt, ...]:
    """The last lines of a finding's logs, of two at most."""
    found = (excerpt(run.path, name) for name in _logs(run, each)[:8])
    return tuple(one for one in found if one)[:MOST_LOGS]


def since_when(measured: Measured, group: Sequence[Finding], values: Group | None) -> datetime | None:
    """When it was first measured so: the start of its own measurement, else the first time that its trials left."""
    own = _own(group[0], values) if len(group) == 1 else None
    if own and own.measurement.start:
        return own.measurement.start
    times = [measured.trial_time(trial) for each in group for trial in each.evidence]
    return min((time for time in times if time), default=None)


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
    """The values of the same metric and params that hold the finding's own, or None; for a finding about pairs, those
    of all pairs."""
    groups = measured.groups(each.metric) if each.metric else []
    if each.check.startswith("pairs."):
        wanted = each.params.items()
        return next((group for group in groups if wanted <= group.params.items() and _pairs_of(each, group)), None)
    return next((group for group in groups if group.params == each.params and _own(each, group)), None)


def _pairs_of(each: Finding, values: Group) -> set[str]:
    """The pairs that a node or a link of two nodes is part of."""
    mine = set(nodes_of(each.subject))
    pairs = (value.subject for value in values.values if "~" in value.subject)
    return {pair for pair in pairs if mine and mine <= set(nodes_of(pair))}


def _own(each: Finding, values: Group | None) -> Value | None:
    return next((value for value in values.values if value.subject == each.subject), None) if values else None


def among_peers(group: Sequence[Finding], values: Group) -> Markup | None:
    """The values of findings of one check drawn among their peers, or None where there are none."""
    each, names = group[0], {one.subject for one in group}
    subjects = names & {value.subject for value in values.values} or _pairs_of(each, values)
    if len(values.values) < 2 or not subjects:
        return None
    unit = values.metric.unit
    several = len({name for value in values.values for name in nodes_of(value.subject)}) > 1
    marks = [dot_of(value, subjects, several=several) for value in values.values]
    same_unit = each.threshold is not None and each.unit == unit
    threshold = (
        Line(value=each.threshold or 0.0, label=f"demanded {figure(each.threshold, unit)}") if same_unit else None
    )
    middle = figure(values.median, unit)
    who = each.subject if len(names) == 1 else f"{len(names):,} subjects"
    if subjects.isdisjoint(names):
        who += f" with {number_of(len(subjects), 'partner')}"
    others = len(marks) - len(subjects)
    label = f"{who} at {figure(each.observed, each.unit)} among {others} peers, median {middle}"
    return peers(marks, unit=unit, threshold=threshold, name=who, label=label)


def nodes_of(subject: str) -> tuple[str, ...]:
    """The nodes a subject belongs to; none for what is no subject."""
    try:
        return parse_subject(subject).nodes
    except ValueError:
        return ()
