"""What the verdict says of the subjects and metrics of a section."""

from ...scoring.verdict import Finding, Verdict
from ..charts import Line
from ..layout import Chart
from ..measured import Group, Measured, params_label
from ..numbers import figure, number_of
from ..spread import noun, spread_chart
from ..tables import reason_words


def failing(verdict: Verdict, prefix: str) -> frozenset[str]:
    """The subjects that failed or warned on a metric that begins with the prefix."""
    return frozenset(each.subject for each in _findings(verdict, prefix) if each.result in ("fail", "warn"))


def judged_chart(measured: Measured, verdict: Verdict, group: Group) -> Chart:
    """A group's subjects with what the verdict says of them: who failed, the threshold, and who is missing."""
    flagged = failing(verdict, group.metric.name)
    return spread_chart(group, flagged=flagged, lines=demanded(verdict, group), absent=measured.absent(group))


def demanded(verdict: Verdict, group: Group) -> list[Line]:
    """The thresholds of a group as lines, where the verdict has one number for all its subjects: the contract's or the
    reference's before that of a comparison. Who fails is told what is demanded, who does not what is good."""
    judged = [
        each
        for each in _findings(verdict, group.metric.name)
        if each.threshold is not None and each.unit == group.metric.unit and each.params == group.params
    ]
    found = [each for each in judged if each.layer not in ("peers", "baseline")] or judged
    failed = {each.threshold for each in found if each.result == "fail"}
    others = {each.threshold for each in found} - failed
    if len(failed) > 1 or len(others) > 1:
        return []
    words = [("demanded", failed or others), ("good", others if failed else set())]
    unit = group.metric.unit
    return [
        Line(value=value, label=f"{word} {figure(value, unit)}") for word, values in words for value in values if value
    ]


def each_of(group: Group) -> str:
    """The subjects of a group as the start of a sentence: All 512 GPUs, Both slots, n1."""
    if len(group.values) == 1:
        return group.values[0].subject
    return f"All {number_of(len(group.values), noun(group))}"


def nonzero(measured: Measured, name: str) -> tuple[int, list[str]] | None:
    """For a metric that must be 0: how many subjects were looked at and which are not 0. None where none was."""
    values = [each for group in measured.groups(name) for each in group.values]
    if not values:
        return None
    return len({each.subject for each in values}), sorted({each.subject for each in values if each.value != 0})


def not_measured(measured: Measured, *prefixes: str) -> str:
    """The sentence of a section without a value: why, and what to do."""
    missing = measured.missing(*prefixes)
    if not missing:
        return "Not measured: this run holds no trial of it. Run a profile that includes it."
    why, remedy = reason_words(missing[0].reason)
    return f"Not measured: {why}. To measure it, {remedy}."


def described(group: Group) -> str:
    """The params of a group as the end of a sentence, or nothing."""
    return f" ({params_label(group.params)})" if group.params else ""


def _findings(verdict: Verdict, prefix: str) -> list[Finding]:
    return [each for each in verdict.findings if (each.metric or "").startswith(prefix)]
