"""Checks on facts: limits against a contract, and what should be the same everywhere by majority."""

from collections import Counter
from collections.abc import Iterator

import msgspec

from ..evidence import metric
from ..evidence.records import Scalar
from .facts import Facts
from .findings import badness, new_finding, with_layer
from .layers import Judged, by_contract, by_majority
from .policy_model import Check
from .scope import Target
from .verdict import Finding

_IN_BYTES = (".memory", ".memlock", ".size", ".free", ".total")


def judge_facts(check: Check, scope: list[Target], facts: Facts) -> Iterator[Finding]:
    """One finding for each subject. A fact that was not recorded is not measured."""
    key, unit = check.fact or "", unit_of(check)
    everywhere = Counter(value for target in scope if (value := facts.get(target.subject, key)) is not None)
    for target in scope:
        value = facts.get(target.subject, key)
        if value is None or target.unknown:
            yield _not_seen(check, target, facts)
            continue
        worst = min(_layers(check, value, everywhere), key=badness, default=None)
        finding = new_finding(check, target, worst.result if worst else "pass", facts)
        finding = with_layer(finding, worst, observed=value, fallback="recorded")
        yield msgspec.structs.replace(finding, unit=unit)


def _layers(check: Check, value: Scalar, everywhere: Counter[Scalar]) -> Iterator[Judged]:
    if check.layers.contract is not None:
        yield by_contract(value, check.layers.contract, unit_of(check))
    if check.layers.uniform is not None:
        yield by_majority(value, check.layers.uniform, everywhere)


def _not_seen(check: Check, target: Target, facts: Facts) -> Finding:
    closed = facts.why_not(target.subject, check.fact or "")
    return msgspec.structs.replace(
        new_finding(check, target, "not_measured", facts),
        reason="closed_to_tenant" if closed else "not_returned",
        detail=target.unknown or closed or f"{check.fact} was not recorded",
        expected="recorded",
    )


def unit_of(check: Check) -> str:
    """The unit of what a check looks at; facts of memory and storage are in bytes."""
    if check.metric:
        return metric(check.metric).unit
    if check.rule == "run.length":
        return "h"
    return "bytes" if (check.fact or "").endswith(_IN_BYTES) else ""
