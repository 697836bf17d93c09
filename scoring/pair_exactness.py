"""Wrong sums between nodes: the pairs or rails that had them, and the node that all of them share."""

from collections.abc import Iterator

import msgspec

from .derived import Figures
from .findings import new_finding
from .happenings import Happenings
from .pairs import pair_subjects
from .policy_model import Check
from .rails import rail_subjects
from .rules import RULES
from .scope import Target, nodes_of
from .values import Value
from .verdict import Finding
from .words import counted, several

# Of each rule: the metric, and what its subjects are called.
_OF_RULE = {
    "pairs.exact": ("all_reduce.wrong_elements", "pair"),
    "rails.exact": ("rail.wrong_elements", "rail"),
}
EXACT_RULES = tuple(_OF_RULE)


def judge_exactness(check: Check, scope: list[Target], figures: Figures, happenings: Happenings) -> Iterator[Finding]:
    """A finding for each pair, rail or NVLink domain that ever had a wrong element; what one attempt showed no other
    undoes."""
    metric, noun = _OF_RULE[str(check.rule)]
    subjects = pair_subjects(figures, metric) if noun == "pair" else rail_subjects(figures, metric)
    domains = [subject for subject in figures.measured.subjects(metric) if subject.startswith("domain:")]
    found = {subject: figures.of(metric, subject) for subject in (*subjects.values(), *domains)}
    wrong = {subject: worst for subject, values in found.items() if (worst := _worst(values)) > 0}
    for target in scope:
        yield from (_wrong(check, subject, wrong, found[subject], figures) for subject in wrong)
        gone = sorted(subject for subject, values in found.items() if subject not in wrong and _unknown(values))
        gone = [subject for subject in gone if _respond(subject, figures, happenings)]
        if gone or not found:
            yield _missing(check, target, gone, figures)
        elif not wrong:
            exact = new_finding(check, target, "pass", figures.facts)
            yield _described(check, exact, observed=0.0, detail=f"{counted(len(found), noun)}, every element right")


def _wrong(check: Check, subject: str, wrong: dict[str, float], values: list[Value], figures: Figures) -> Finding:
    nodes = nodes_of(subject)
    own = Target(subject=subject, nodes=nodes)
    shared = [node for node in nodes if _only_shared(node, wrong)]
    finding = _described(
        check,
        new_finding(check, own, "fail", figures.facts),
        observed=wrong[subject],
        detail=f"all of them have {shared[0]} in common" if shared else "one of the two, or what is between them",
    )
    trials = tuple(dict.fromkeys(trial for value in values for trial in value.trials))[:20]
    excludes = shared[0] if shared and check.excludable else None
    return msgspec.structs.replace(finding, evidence=trials, excludable=excludes is not None, excludes=excludes)


def _only_shared(node: str, wrong: dict[str, float]) -> bool:
    """Whether a node is in all wrong pairs, of which there are two at least."""
    return len(wrong) > 1 and all(node in nodes_of(subject) for subject in wrong)


def _missing(check: Check, target: Target, gone: list[str], figures: Figures) -> Finding:
    finding = new_finding(check, target, "not_measured", figures.facts)
    metric, noun = _OF_RULE[str(check.rule)]
    detail = f"no count for {several(gone)}" if gone else f"no {noun} of nodes has a count"
    return msgspec.structs.replace(finding, metric=metric, unit="elements", reason="not_returned", detail=detail)


def _described(check: Check, finding: Finding, *, observed: float, detail: str) -> Finding:
    return msgspec.structs.replace(
        finding,
        layer="contract",
        metric=_metric_of(check),
        unit="elements",
        observed=observed,
        expected="at most 0 elements",
        threshold=0.0,
        detail=detail,
    )


def _metric_of(check: Check) -> str:
    return _OF_RULE[str(check.rule)][0]


def _worst(values: list[Value]) -> float:
    numbers = [attempt.value for value in values for attempt in value.by_attempt]
    return max(numbers, default=0.0)


def _unknown(values: list[Value]) -> bool:
    return not values or any(value.value is None for value in values)


def _respond(subject: str, figures: Figures, happenings: Happenings) -> bool:
    responds = RULES["node.responds"]
    return all(responds(node, figures, happenings).result != "fail" for node in nodes_of(subject))
