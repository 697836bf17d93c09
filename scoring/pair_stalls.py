"""Stalls between nodes: small messages that waited for a retransmission, as a lossy cable makes them.

A stall shows where a bandwidth's median does not: 3 % of lost packets cost a fast network little on average, and a
fifth of a second each time the last packet of a message is lost.
"""

from collections.abc import Iterator

import msgspec

from .derived import Figures
from .findings import new_finding
from .happenings import Happenings
from .pairs import pair_subjects
from .policy_model import Check
from .rules import RULES
from .scope import Target, nodes_of
from .verdict import Finding, Result
from .words import counted, several

STALLS = "all_reduce.stalls"
FEWEST = 2  # of a pair: one may be a hiccup of the host


def judge_stalls(check: Check, scope: list[Target], figures: Figures, happenings: Happenings) -> Iterator[Finding]:
    """A node fails that stalls with two partners or more which do not stall with others; with one it warns."""
    case = _Case(check, figures)
    responds = RULES["node.responds"]
    here = {target.subject for target in scope if responds(target.subject, figures, happenings).result != "fail"}
    for target in scope:
        yield case.of_node(target, here)


class _Case:
    def __init__(self, check: Check, figures: Figures) -> None:
        self.check = check
        self.figures = figures
        self.stalls = {subject: _stalls(figures, subject) for subject in pair_subjects(figures, STALLS).values()}
        nodes = {node for subject in self.stalls for node in nodes_of(subject)}
        self.culprits = {node for node in nodes if len(self._shown(node)) >= 2}

    def of_node(self, target: Target, here: set[str]) -> Finding:
        node = target.subject
        if node in self.culprits:
            return self._told(target, "fail", self._shown(node))
        mine = [subject for subject in self._of(node) if set(nodes_of(subject)) <= here | {node}]
        unknown = [subject for subject in mine if self.stalls[subject] is None]
        if unknown or not mine:
            blank = new_finding(self.check, target, "not_measured", self.figures.facts)
            detail = f"no count for {several(unknown)}" if unknown else "it met no partner"
            return msgspec.structs.replace(blank, metric=STALLS, reason="not_returned", detail=detail)
        own = [subject for subject in mine if self._stalled(subject) and not self.culprits & set(nodes_of(subject))]
        return self._told(target, "warn" if own else "pass", own)

    def _of(self, node: str) -> list[str]:
        return [subject for subject in self.stalls if node in nodes_of(subject)]

    def _stalled(self, subject: str) -> bool:
        return (self.stalls[subject] or 0) >= FEWEST

    def _shown(self, node: str) -> list[str]:
        """The node's pairs that stall with a partner which has another pair, measured, that does not."""
        return [
            subject for subject in self._of(node) if self._stalled(subject) and self._partner_is_well(node, subject)
        ]

    def _partner_is_well(self, node: str, subject: str) -> bool:
        (partner,) = set(nodes_of(subject)) - {node}
        others = [other for other in self._of(partner) if node not in nodes_of(other)]
        return any(self.stalls[other] is not None and not self._stalled(other) for other in others)

    def _told(self, target: Target, result: Result, pairs: list[str]) -> Finding:
        shown = pairs or self._of(target.subject)
        values = [value for subject in shown for value in self.figures.of(STALLS, subject)]
        counts = ", ".join(f"{subject}: {self.stalls[subject] or 0:.0f}" for subject in pairs[:4])
        return msgspec.structs.replace(
            new_finding(self.check, target, result, self.figures.facts),
            layer="peers",
            metric=STALLS,
            unit="stalls",
            observed=max((self.stalls[subject] or 0.0 for subject in pairs), default=0.0),
            expected=f"under {FEWEST} stalls of a pair",
            threshold=float(FEWEST),
            confidence="medium" if result == "warn" else "high",
            detail=f"with {counted(len(pairs), 'partner')} ({counts})" if pairs else "",
            action="" if result != "warn" else f"Measure {several(pairs, 2)} again, and look at the link between them.",
            evidence=tuple(dict.fromkeys(trial for value in values for trial in value.trials))[:20],
        )


def _stalls(figures: Figures, subject: str) -> float | None:
    """The pair's worst attempt; None unless its last brought a count."""
    values = figures.of(STALLS, subject)
    if not values or any(value.value is None for value in values):
        return None
    return max(number for value in values for _, number in value.by_attempt)
