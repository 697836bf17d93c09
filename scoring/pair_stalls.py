"""Stalls between nodes: small messages that waited for a retransmission, as a lossy cable makes them.

A stall shows where a bandwidth's median does not: 3 % of lost packets cost a fast network little on average, and a
fifth of a second each time the last packet of a message is lost. Stalls seen once are a suspicion: a busy host makes
them too. A node is blamed for those that come again when its pairs are measured alone.
"""

from collections.abc import Iterator

import msgspec

from ..fabric import FEWEST_STALLS, stalls, stalls_again
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
BLAMING = 2  # partners


def judge_stalls(check: Check, scope: list[Target], figures: Figures, happenings: Happenings) -> Iterator[Finding]:
    """A node fails that stalls, and again in retests, with two partners or more which do not stall with others; with
    one, or not again, it warns."""
    case = _Case(check, figures)
    responds = RULES["node.responds"]
    here = {target.subject for target in scope if responds(target.subject, figures, happenings).result != "fail"}
    for target in scope:
        yield case.of_node(target, here)


class _Case:
    def __init__(self, check: Check, figures: Figures) -> None:
        self.check = check
        self.figures = figures
        subjects = pair_subjects(figures, STALLS).values()
        self.values = {subject: figures.of(STALLS, subject) for subject in subjects}
        self.of_nodes: dict[str, list[str]] = {}  # each node's pairs
        for subject in self.values:
            for node in nodes_of(subject):
                self.of_nodes.setdefault(node, []).append(subject)
        self.suspects = {node for node in self.of_nodes if len(self._shown(node)) >= BLAMING}

    def of_node(self, target: Target, here: set[str]) -> Finding:
        node = target.subject
        shown = self._shown(node) if node in self.suspects else []
        if sum(stalls_again(self._retests(subject)) for subject in shown) >= BLAMING:
            return self._told(target, "fail", shown)
        mine = [subject for subject in self._of(node) if set(nodes_of(subject)) <= here | {node}]
        unknown = [subject for subject in mine if self._unknown(subject)]
        if unknown or not mine:
            detail = f"no count for {several(unknown)}" if unknown else "it met no partner"
            return self._not_measured(target, "not_returned", detail)
        if shown:
            return self._suspect(target, shown)
        own = [subject for subject in mine if self._stalls(subject) and not self.suspects & set(nodes_of(subject))]
        return self._told(target, "warn" if own else "pass", own)

    def _suspect(self, target: Target, shown: list[str]) -> Finding:
        """Retested and not seen again it warns; never retested it is not judged."""
        if sum(bool(self._retests(subject)) for subject in shown) >= BLAMING:
            return self._told(target, "warn", shown)
        finding = self._not_measured(target, "not_retested", f"seen once with {counted(len(shown), 'partner')}")
        return msgspec.structs.replace(finding, action=_again(shown))

    def _of(self, node: str) -> list[str]:
        return self.of_nodes.get(node, [])

    def _counts(self, subject: str, *, after: int = 0) -> list[float]:
        """The pair's count in each attempt after that one."""
        attempts = (attempt for value in self.values[subject] for attempt in value.by_attempt)
        return [attempt.value for attempt in attempts if attempt.number > after]

    def _unknown(self, subject: str) -> bool:
        """Whether the pair's last attempt brought no count."""
        return not self.values[subject] or any(value.value is None for value in self.values[subject])

    def _stalls(self, subject: str) -> bool:
        return stalls(self._counts(subject))

    def _retests(self, subject: str) -> list[float]:
        return self._counts(subject, after=1)

    def _shown(self, node: str) -> list[str]:
        """The node's pairs that stall with a partner which has another pair, measured, that does not."""
        return [subject for subject in self._of(node) if self._stalls(subject) and self._partner_is_well(node, subject)]

    def _partner_is_well(self, node: str, subject: str) -> bool:
        (partner,) = set(nodes_of(subject)) - {node}
        others = [other for other in self._of(partner) if node not in nodes_of(other)]
        return any(not self._unknown(other) and not self._stalls(other) for other in others)

    def _not_measured(self, target: Target, reason: str, detail: str) -> Finding:
        blank = new_finding(self.check, target, "not_measured", self.figures.facts)
        return msgspec.structs.replace(blank, metric=STALLS, reason=reason, detail=detail)

    def _told(self, target: Target, result: Result, pairs: list[str]) -> Finding:
        shown = pairs or self._of(target.subject)
        values = [value for subject in shown for value in self.values[subject]]
        counts = "; ".join(f"{subject}: {self._said(subject)}" for subject in pairs[:4])
        return msgspec.structs.replace(
            new_finding(self.check, target, result, self.figures.facts),
            layer="peers",
            metric=STALLS,
            unit="stalls",
            observed=max((count for subject in pairs for count in self._counts(subject)), default=0.0),
            expected=f"under {FEWEST_STALLS} stalls of a pair",
            threshold=float(FEWEST_STALLS),
            confidence="medium" if result == "warn" else "high",
            detail=f"with {counted(len(pairs), 'partner')} ({counts})" if pairs else "",
            action="" if result != "warn" else _again(pairs),
            evidence=tuple(dict.fromkeys(trial for value in values for trial in value.trials))[:20],
        )

    def _said(self, subject: str) -> str:
        return ", ".join(f"{count:.0f}" for count in self._counts(subject))


def _again(pairs: list[str]) -> str:
    return f"Measure {several(pairs, 2)} again, and look at the link between them."
