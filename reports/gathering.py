"""The order of findings, and which of them share a row: a reader looks for what decides, not for 512 times the same."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from msgspec import Struct

from ..evidence import is_metric, metric
from ..scoring.verdict import Finding, FindingCost, Result, Verdict
from .finding_evidence import nodes_of
from .plain_text import natural
from .taken_out import on_taken_out

CONFIDENCE = {"high": 3, "medium": 2, "low": 1}
_GATHER_FROM = 2  # so many like findings without a value become one row
_SAME = "same check"
_MANY = 9  # so many subjects on which the same check ends the same, with a value, become one row
_ORDER: dict[Result, int] = {"fail": 1, "not_measured": 2, "warn": 3, "pass": 4}
_LAST = 9
# How the runner begins the detail of what it was told to leave out; a probe's own detail gives a reason of its own.
_LEFT_OUT = re.compile(r"(?:left out by )?(?=--only |profile )")


class Gathered(Struct, frozen=True, kw_only=True):
    """Findings that share a row. `why` says of findings of several checks what they have in common, else nothing."""

    findings: tuple[Finding, ...]
    why: str = ""


def gathered(verdict: Verdict) -> list[Gathered]:
    """What did not pass, the gravest first, like findings together.

    A finding with a value stands alone, unless the same check ends so on nine subjects or more: the rest would be
    pushed off the table. Together stand: the same check without a value, for the same reason; all that the run was told
    to leave out; and all that is missing on nodes that are taken out.
    """
    groups: dict[tuple[object, ...], list[Finding]] = {}
    ordered = _ordered(verdict)
    often = Counter(_same_check(each) for each in ordered if each.result != "not_measured")
    for each in ordered:
        like = _same_check(each) if often[_same_check(each)] >= _MANY else _like(each, verdict)
        groups.setdefault(like, []).append(each)
    return [part for like, found in groups.items() for part in _parts(like, found)]


def cost_of(each: Finding, verdict: Verdict) -> FindingCost | None:
    """What a finding costs: that of what it takes out, or its own; None without a price, and where none can be derived.
    Findings of the same share one."""
    for cost in verdict.economics.findings:
        out = cost.subject in nodes_of(each.excludes or "")
        own = each.check in cost.checks and each.result != "pass" and each.subject in (cost.subject, "cluster")
        if own if cost.checks else out:
            return cost
    return None


def _parts(like: tuple[object, ...], found: Sequence[Finding]) -> list[Gathered]:
    if len(found) < _GATHER_FROM:
        return [Gathered(findings=(each,)) for each in found]
    if like[0] == _SAME:
        return [Gathered(findings=_worst_first(found))]
    several = len({each.check for each in found}) > 1
    return [Gathered(findings=tuple(found), why=f"{like[0]} {like[1]}" if several else "")]


def _same_check(each: Finding) -> tuple[object, ...]:
    return _SAME, each.check, each.result, each.required, each.layer, tuple(each.params.items())


def _worst_first(found: Sequence[Finding]) -> tuple[Finding, ...]:
    """Findings of one check with the worst value first; as they are where no direction is better."""
    name = found[0].metric
    better = metric(name).better if name and is_metric(name) else "neither"
    numbers = [each.observed for each in found if isinstance(each.observed, int | float)]
    if better == "neither" or len(numbers) < len(found):
        return tuple(found)
    paired = sorted(zip(numbers, found, strict=True), key=lambda one: one[0], reverse=better == "lower")
    return tuple(each for _, each in paired)


def _like(each: Finding, verdict: Verdict) -> tuple[object, ...]:
    """What findings must share to stand in one row."""
    if each.result != "not_measured":
        return "alone", id(each)
    left_out = _LEFT_OUT.match(each.detail)
    if each.reason == "skipped_by_profile" and left_out:
        return "left out by", each.detail[left_out.end() :], each.required
    if on_taken_out(each, verdict):
        return "on excluded", "nodes"
    return "check", each.check, each.required, each.reason, each.expected, tuple(each.params.items())


def _ordered(verdict: Verdict) -> list[Finding]:
    """Fail, then what is required and not measured, then warnings, then what could not be seen; the dearest first.

    Where the verdict is INCONCLUSIVE, what is required and missing on what remains decides, and stands first. What is
    missing on nodes that are taken out decides nothing, and stands last.
    """

    def grave(each: Finding) -> tuple[object, ...]:
        place = _ORDER[each.result]
        if each.result == "not_measured":
            out = bool(on_taken_out(each, verdict))
            decides = each.required and not out and verdict.verdict == "INCONCLUSIVE"
            place = 0 if decides else _LAST if out else place if each.required else _LAST - 1
        cost = cost_of(each, verdict)
        usd = (cost.usd.value if cost else None) or 0.0
        return place, -usd, not each.required, -CONFIDENCE[each.confidence]

    found = (each for each in verdict.findings if each.result != "pass")
    return sorted(found, key=lambda each: (*grave(each), each.category, each.check, natural(each.subject)))


def nodes_in(findings: Iterable[Finding]) -> list[str]:
    """The nodes that findings belong to, in natural order."""
    return sorted({node for each in findings for node in nodes_of(each.subject)}, key=natural)
