"""Checks of pairs by the min-model: which nodes are slow with everybody, which links between good nodes are slow."""

from collections.abc import Iterable, Iterator

import msgspec

from ..evidence.records import Params
from ..fabric import Culprit, LevelName, Pair, Undecided, level_of, pair_of
from .derived import Figures
from .findings import INTERMITTENT, badness, new_finding
from .happenings import Happenings
from .joined import members
from .pair_crowds import contention, of_crowd
from .pairs import BUSBW, PairFigures, nvlink_domains, pair_figures, pair_levels
from .policy_model import Check, RuleName
from .rules import RULES
from .scope import Target
from .verdict import Confidence, Finding, Result
from .words import counted, figure, percent, several

PAIR_RULES: tuple[RuleName, ...] = ("pairs.nodes", "pairs.links")
MOST_TRIALS = 20
_ON = {"": "", "domain": " within a domain", "between": " between domains"}


def judge_pairs(check: Check, scope: list[Target], figures: Figures, happenings: Happenings) -> Iterator[Finding]:
    """Findings of a pair rule: one a node, or one a link at fault and one for the cluster where there is none.

    Where nodes joined an accepted run, each part has pairs of its own. A node is what the worst figures of any part
    show; a part that could not tell takes nothing from one that could.
    """
    epochs, levels = range(len(figures.header.joins) + 1), pair_levels(figures)
    cases = [_Case(check, figures, happenings, epoch, level) for epoch in epochs for level in levels]
    for target in scope:
        if check.rule == "pairs.nodes":
            told = [found for epoch in epochs for found in _on_levels(target, [c for c in cases if c.epoch == epoch])]
            yield min(told, key=lambda finding: _WEIGHTIEST.index(finding.result))
        else:
            yield from _of_all_links(target, cases)


def _on_levels(target: Target, cases: list["_Case"]) -> Iterator[Finding]:
    """The worst of what the levels of the fabric say of a node, in one part of a run that it belongs to."""
    own = [case for case in cases if target.subject in case.members]
    found = [case.of_node(target) for case in own if len(own) == 1 or case.others(target.subject)]
    yield from [min(found, key=badness)] if found else [case.of_node(target) for case in own[:1]]


_WEIGHTIEST: tuple[Result, ...] = ("fail", "warn", "pass", "not_measured")


def _of_all_links(target: Target, cases: list["_Case"]) -> Iterator[Finding]:
    """Each link at fault in any part; else what the parts say of the cluster, as one finding."""
    able = [case for case in cases if len(case.members) > 1] or cases[:1]
    found = [finding for case in able for finding in case.of_links(target)]
    pairs = sum(len(case.blame.levels.of) for case in able if case.blame)
    but = "".join(contention(case.blame) for case in able)
    if but or not found:
        found.append(able[-1].no_slow_link(target, pairs, but, more=bool(found)))
    yield from found


class _Case:
    def __init__(
        self, check: Check, figures: Figures, happenings: Happenings, epoch: int, level: LevelName
    ) -> None:  # fmt: skip
        self.check = check
        self.figures = figures
        self.members = members(figures.header, epoch)
        self.epoch = epoch
        self.level = level
        self.domains = nvlink_domains(figures)
        self.pairs: PairFigures = pair_figures(figures, check, epoch, level)
        blame = self.pairs.blame
        self.blame = blame
        self.culprits = {one.node: one for one in blame.nodes if one.node} if blame else {}
        self.doubts = {node: one for one in blame.undecided for node in one.nodes} if blame else {}
        self.missing_of, self.met_of = _by_node(self.pairs.missing), _by_node(blame.levels.of if blame else ())
        names = sorted(self.members)
        responds = RULES["node.responds"]
        self.here = {name for name in names if responds(name, figures, happenings).result != "fail"}
        least = 1 - (blame.levels.thresholds.effect if blame else 0.0)
        self.least = least
        self.expected = (
            f"at least {percent(least)} of the {figure(self.pairs.ceiling(), 'GB/s')} of good pairs{_ON[level]}"
        )

    # --- nodes -----------------------------------------------------------------------------------------------

    def of_node(self, target: Target) -> Finding:
        node = target.subject
        culprit, doubt = self.culprits.get(node), self.doubts.get(node)
        if culprit is not None and culprit.confirmed:
            return self._slow(target, culprit, "fail")
        gap = self._gap(node)
        if gap:
            return self._not_measured(target, "not_returned", gap)
        if culprit is not None:
            return self._slow(target, culprit, self._seen(culprit.evidence))
        if doubt is not None:
            return self._doubtful(target, doubt)
        if self.blame is not None and node in self.blame.hidden:
            return self._not_measured(target, "undecided", "it met slow partners only")
        return self._well(target)

    def others(self, node: str) -> set[str]:
        """The nodes that are there and with which this one is a pair on this level."""
        here = self.here - {node}
        if not self.domains:
            return here
        return {other for other in here if level_of(pair_of(node, other), self.domains) == self.level}

    def _gap(self, node: str) -> str:
        """Why too little is known of a node; empty where it is enough. Partners that are gone are not its fault."""
        gone = self.missing_of.get(node, ())
        pair = next((pair for pair in gone if all(one == node or one in self.here for one in pair)), None)
        if pair is not None:
            return f"{self._subject(pair)}: {self.pairs.missing[pair]}"
        met = self.met_of.get(node, [])
        wanted = max(1, min(self.check.partners_at_least, len(self.others(node))))
        if len(met) < wanted:
            return f"measured with {counted(len(met), 'partner')}, {wanted} are wanted"
        return ""

    def _slow(self, target: Target, culprit: Culprit, result: Result) -> Finding:
        again = several([self._subject(pair) for pair in culprit.evidence], 2)
        return self._told(
            target, result, culprit.share, culprit.evidence,
            detail=f"slow with {counted(len(culprit.evidence), 'partner')} that do better; 95 % interval "
            f"{self._rate(culprit.low)} to {self._rate(culprit.high)}",
            action="" if result == "fail" else f"Measure {again} again, alone: only a loss seen again fails.",
        )  # fmt: skip

    def _doubtful(self, target: Target, doubt: Undecided) -> Finding:
        """One of these is slow: seen again it leaves the node unjudged, seen once it warns."""
        among = [*doubt.nodes, *(f"the link {self._subject(pair)}" for pair in doubt.links)]
        said = f"one of these is slow, and nothing measured tells which: {several(among, 6)}"
        settle = several([self._subject(pair) for pair in doubt.settle], 4)
        how = f"Measure {settle}: that would settle it." if settle else "Measure it with a node that is known good."
        if doubt.confirmed:
            return msgspec.structs.replace(self._not_measured(target, "undecided", said), action=how)
        return self._told(
            target, self._seen((doubt.shown_by,)), doubt.share, (doubt.shown_by,), detail=said, action=how
        )

    def _seen(self, pairs: tuple[Pair, ...]) -> Result:
        """Of an outlier that is not confirmed: retested and not clear, it warns; never retested, it is not judged."""
        assert self.blame is not None
        retested = sum(self.blame.levels.of[pair].retests > 1 for pair in pairs)
        return "warn" if retested >= min(2, len(pairs)) else "not_measured"

    def _well(self, target: Target) -> Finding:
        assert self.blame is not None
        able = self.blame.capabilities.get(target.subject)
        met = tuple(self.met_of.get(target.subject, ()))
        if len(self.blame.levels.of) < 2 or able is None:
            detail = "not judged among peers: one pair has no other to be compared with"
            return self._told(target, "pass", self.blame.levels.of[met[0]].share, met, detail=detail)
        interval = f"95 % interval {self._rate(able.low)} to {self._rate(able.high)}, {counted(len(met), 'partner')}"
        return self._told(target, "pass", able.share, met, detail=interval)

    # --- links -----------------------------------------------------------------------------------------------

    def of_links(self, target: Target) -> Iterator[Finding]:
        """Each link at fault, and what so many slow ones say of the cluster."""
        if self.blame is None:
            yield self._not_measured(target, "not_returned", "no pair of nodes has a value")
            return
        found = [self._link(target, culprit) for culprit in self.blame.links]
        found += [self._unsteady(target, pair) for pair in self.blame.unsteady]
        blank = self._blank(target, "warn" if self.blame.split else "not_measured")
        crowd = of_crowd(blank, self.pairs, self.blame, MOST_TRIALS)
        yield from [*found, crowd] if crowd else found

    def no_slow_link(self, target: Target, pairs: int, but: str, *, more: bool) -> Finding:
        """What is said of the cluster where no link of so many pairs is at fault, or no `more` than those named."""
        least = "no other of" if more else "none of"
        found = self._told(target, "pass", 1.0, (), detail=f"{least} {counted(pairs, 'pair')} has a slow link{but}")
        return msgspec.structs.replace(found, confidence="medium") if but else found

    def _link(self, target: Target, culprit: Culprit) -> Finding:
        assert culprit.pair is not None
        one, other = culprit.pair
        subject = self._subject(culprit.pair)
        own = msgspec.structs.replace(target, subject=subject, nodes=culprit.pair)
        if not culprit.confirmed and culprit.pair in self.pairs.missing:
            return self._not_measured(own, "not_returned", self.pairs.missing[culprit.pair])
        finding = self._told(
            own, "fail" if culprit.confirmed else self._seen(culprit.evidence), culprit.share, culprit.evidence,
            detail=f"{one} and {other} do better with others",
            action=f"Have the path between {one} and {other} looked at (cables, switch ports, routes), or place no "
            f"job on both." if culprit.confirmed else f"Measure {subject} again, alone: only a loss seen again fails.",
        )  # fmt: skip
        if finding.result == "fail" and self.check.excludable:
            return msgspec.structs.replace(finding, excludable=True, excludes=subject)
        return finding

    def _unsteady(self, target: Target, pair: Pair) -> Finding:
        assert self.blame is not None
        level = self.blame.levels.of[pair]
        own = msgspec.structs.replace(target, subject=self._subject(pair), nodes=pair)
        shown = f"{self._rate(level.first or 0.0)} beside other pairs, {self._rate(level.share)} alone"
        return self._told(own, "warn", level.share, (pair,), detail=INTERMITTENT + shown)

    # --- both ------------------------------------------------------------------------------------------------

    def _told(
        self, target: Target, result: Result, share: float, pairs: tuple[Pair, ...], *, detail: str, action: str = ""
    ) -> Finding:
        blank = self._blank(target, result)
        sure: Confidence = "high" if result in ("pass", "fail") else "medium"
        return msgspec.structs.replace(
            blank,
            observed=float(f"{share * self.pairs.ceiling():.6g}"),
            threshold=float(f"{self.least * self.pairs.ceiling():.6g}"),
            confidence=sure,
            reason="not_retested" if result == "not_measured" else "",
            detail=detail,
            action=action,
            evidence=self.pairs.evidence(pairs)[:MOST_TRIALS],
        )

    def _not_measured(self, target: Target, reason: str, detail: str) -> Finding:
        return msgspec.structs.replace(self._blank(target, "not_measured"), reason=reason, detail=detail)

    def _blank(self, target: Target, result: Result) -> Finding:
        params: Params = {"bytes": self.pairs.bytes} if self.pairs.bytes else {}
        return msgspec.structs.replace(
            new_finding(self.check, target, result, self.figures.facts),
            layer="peers",
            metric=BUSBW,
            params=params,
            unit="GB/s",
            expected=self.expected if self.blame else "measured",
        )

    def _rate(self, share: float) -> str:
        return figure(share * self.pairs.ceiling(), "GB/s")

    def _subject(self, pair: Pair) -> str:
        return self.pairs.subjects.get(pair) or "~".join(pair)


def _by_node(pairs: Iterable[Pair]) -> dict[str, list[Pair]]:
    """Each node's pairs, in their order: with hundreds of nodes nobody can look through all pairs for each."""
    found: dict[str, list[Pair]] = {}
    for pair in pairs:
        for node in pair:
            found.setdefault(node, []).append(pair)
    return found
