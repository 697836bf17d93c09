"""Checks by a named rule, and by the figure that a rule gives against a contract."""

import msgspec

from .derived import Figures
from .findings import new_finding
from .happenings import Happenings
from .layers import by_contract
from .mtbf import judge_mtbf
from .policy_model import Check
from .rules import RULES
from .scope import Target
from .verdict import Finding
from .words import figure


def judge_rule(check: Check, target: Target, figures: Figures, happenings: Happenings) -> Finding:
    """What the check's rule says of a subject."""
    assert check.rule is not None
    if check.rule == "reliability.mtbf":
        return judge_mtbf(check, target, figures, happenings)
    ruled = RULES[check.rule](target.subject, figures, happenings)
    if ruled.number is not None and check.layers.contract is not None:
        return _by_figure(check, target, figures, ruled.number, ruled.unit)
    return msgspec.structs.replace(
        new_finding(check, target, ruled.result, figures.facts),
        layer="rule",
        observed=ruled.observed or None,
        expected=ruled.expected,
        reason=ruled.reason,
        detail=ruled.detail,
        statement=ruled.statement,
        evidence=ruled.trials[:20],
    )


def _by_figure(check: Check, target: Target, figures: Figures, number: float, unit: str) -> Finding:
    """A rule's figure against the check's contract. A run that was too short is no fault: it did not look for long
    enough."""
    assert check.layers.contract is not None
    judged = by_contract(number, check.layers.contract, unit)
    short = judged.result == "fail" and check.rule == "run.length"
    return msgspec.structs.replace(
        new_finding(check, target, "not_measured" if short else judged.result, figures.facts),
        layer="contract",
        observed=None if short else number,
        expected=judged.expected,
        threshold=judged.threshold,
        unit=unit,
        reason="too_short" if short else "",
        detail=f"it was {figure(number, unit)}" if short else "",
    )
