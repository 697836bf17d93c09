"""How a finding is made: its result, whether it is required, whom it would take out, and how far it is trusted."""

from typing import NamedTuple

import msgspec

from ..evidence.records import Scalar
from .facts import Facts
from .layers import Judged
from .policy_model import Check
from .scope import Target
from .values import ENOUGH_SAMPLES, FEW_SAMPLES, NOISY, Value
from .verdict import Confidence, Finding, Result

# The worst first: a value that failed is a fault, whatever else is missing; what is missing is never a pass.
RANKS: dict[Result, int] = {"fail": 0, "not_measured": 1, "warn": 2, "pass": 3}
INTERMITTENT = "intermittent: "
# How a passing finding begins that tells what a layer of it could not say.
NOT_JUDGED = {
    "peers": "not judged among peers",
    "reference": "not judged against a reference",
    "contract": "not judged by a contract",
    "baseline": "not judged against the baseline",
    "rule": "not judged by a rule",
}


def badness(found: Judged | Finding) -> int:
    """The smaller the worse."""
    return RANKS[found.result]


def new_finding(check: Check, target: Target, result: Result, facts: Facts) -> Finding:
    """A finding of a check on a subject, with nothing observed yet."""
    blank = Finding(
        check=check.check, category=check.category, subject=target.subject, result=result, required=False
    )  # fmt: skip
    return resulting(check, blank, target, result, facts)


def resulting(check: Check, finding: Finding, target: Target, result: Result, facts: Facts) -> Finding:
    """The finding with this result: what may only warn warns, and who would have to be taken out is named.

    A tier says what must be measured; what was measured and failed counts in every tier.
    """
    stands = standing(check, target, result, finding.reason, facts)
    return msgspec.structs.replace(
        finding,
        result=stands.result,
        required=stands.required,
        excludable=stands.excludable,
        excludes=stands.excludes,
        confidence="low" if stands.result == "not_measured" else finding.confidence,
    )


class Standing(NamedTuple):
    """How a result counts: what may only warn warns."""

    result: Result
    required: bool
    excludable: bool
    excludes: str | None


def standing(check: Check, target: Target, result: Result, reason: str, facts: Facts) -> Standing:
    """How a check's result on a subject counts, and who would have to be taken out."""
    seen_once = result == "not_measured" and reason == "not_retested"
    if check.severity == "warn" and (result == "fail" or seen_once):
        result = "warn"
    excludable = check.excludable and len(target.nodes) == 1
    return Standing(
        result=result,
        required=check.severity == "required" and (result == "fail" or _demanded(check, target, facts)),
        excludable=excludable,
        excludes=target.nodes[0] if excludable and result == "fail" else None,
    )


def _demanded(check: Check, target: Target, facts: Facts) -> bool:
    """Whether any tier recorded of any node behind the subject must measure it. A cluster without nodes demands all."""
    nodes = target.nodes
    if len(nodes) == 1:
        return not facts.tiers(nodes[0]).isdisjoint(check.tiers)
    return not nodes or not all(facts.tiers(node).isdisjoint(check.tiers) for node in nodes)


def with_layer(finding: Finding, worst: Judged | None, observed: Scalar, fallback: str) -> Finding:
    """The finding with what was observed, and with the words of the layer that speaks."""
    if worst is None:
        return msgspec.structs.replace(finding, observed=observed, expected=fallback)
    return msgspec.structs.replace(
        finding,
        observed=observed,
        layer=worst.layer,
        expected=worst.expected,
        threshold=worst.threshold,
        reason=worst.reason,
        detail=worst.detail,
    )


def confidence_of(value: Value, worst: Judged | None) -> Confidence:
    """How far the figure is to be trusted: many quiet samples, or few or noisy ones.

    A count of faults is exact, and what was seen again in a retest is surer.
    """
    if worst is not None and worst.threshold == 0:
        return "high"
    noisy = value.noise is not None and value.noise > NOISY
    if noisy or value.samples < FEW_SAMPLES:
        return "low" if value.attempts == 1 else "medium"
    return "high" if value.samples >= ENOUGH_SAMPLES or value.attempts > 1 else "medium"
