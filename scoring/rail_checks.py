"""The check of rails: which NIC of which node, or which path between two, is slower than good rails or than its line.

Two layers: among peers by the min-model (fabric/rails.py), retested before anybody is blamed; and by contract the share
of the line rate that a place reaches with its best partner, which also shows what is wrong with all of them alike.
"""

from collections.abc import Iterator

import msgspec

from ..evidence import Promised
from ..evidence.records import Params
from ..fabric import Blame, Culprit, Undecided, rail_subject
from ..fabric import Pair as Places
from .derived import Figures
from .findings import new_finding
from .happenings import Happenings
from .layers import by_contract
from .policy_model import Check
from .rails import RAIL, RailFigures, rail_figures
from .rules import RULES
from .scope import Target, nodes_of
from .verdict import Finding, Layer, Result
from .words import counted, figure, percent, several

MOST_TRIALS = 20


def judge_rails(check: Check, scope: list[Target], figures: Figures, happenings: Happenings) -> Iterator[Finding]:
    """A finding for each node, or for each of its rails at fault (n03/rail2), and for each link at fault."""
    case = _Case(check, figures, happenings)
    for _ in scope:
        for node in figures.header.promised:
            yield from case.of_node(node)
        yield from case.of_links()


class _Case:
    def __init__(self, check: Check, figures: Figures, happenings: Happenings) -> None:
        self.check = check
        self.figures = figures
        self.rails: RailFigures = rail_figures(figures, check)
        blames: list[Blame] = list(self.rails.blame.values())
        self.culprits = {one.node: one for blame in blames for one in blame.nodes if one.node}
        self.doubts = {place: one for blame in blames for one in blame.undecided for place in one.nodes}
        self.hidden = {place for blame in blames for place in blame.hidden}
        self.links = [one for blame in blames for one in blame.links]
        responds = RULES["node.responds"]
        names = [node.node for node in figures.header.promised]
        self.here = {name for name in names if responds(name, figures, happenings).result != "fail"}

    def of_node(self, node: Promised) -> Iterator[Finding]:
        """Its rails at fault; else what is missing, in doubt or suspected; else that all are well."""
        places = [f"{node.node}/rail{rail}" for rail in range(len(node.ranks))]
        slow = [self._slow(one) for place in places if (one := self.culprits.get(place)) and one.confirmed]
        if slow:
            yield from slow
            return
        gap = self._gap(node.node, places)
        if gap:
            yield self._not_measured(node.node, "not_returned", gap)
            return
        below = [found for place in places if (found := self._below_line(place))]
        open_ = [self._open(place) for place in places if place in self.culprits or place in self.doubts]
        unseen = [place for place in places if place in self.hidden]
        if unseen and not open_:
            open_ = [self._not_measured(node.node, "undecided", f"{several(unseen)} met slow partners only")]
        yield from below or open_ or [self._well(node.node, places)]

    def _gap(self, node: str, places: list[str]) -> str:
        """Why too little is known of a node; empty where it is enough. Partners that are gone are not its fault."""
        for met in self.rails.missing:
            if any(place in met for place in places) and self._nodes(met) <= self.here | {node}:
                return f"{self.rails.subjects[met]}: {self.rails.missing[met]}"
        wanted = max(1, min(self.check.partners_at_least, len(self.here - {node})))
        short = [place for place in places if len(self.rails.met(place)) < wanted]
        return f"{several(short)}: {counted(wanted, 'partner')} wanted" if short else ""

    def _slow(self, culprit: Culprit) -> Finding:
        place = str(culprit.node)
        detail = f"slow with {counted(len(culprit.evidence), 'partner')} that do better; 95 % interval "
        detail += f"{self._rate(culprit.low)} to {self._rate(culprit.high)}"
        return self._told(place, "fail", "peers", culprit.share, culprit.evidence, detail=detail)

    def _below_line(self, place: str) -> Finding | None:
        """Fails or warns where the share of the line rate that the place reaches with its best partner is too low."""
        contract, best = self.check.layers.contract, self._line_share(place)
        if contract is None or best is None:
            return None
        judged = by_contract(best, contract, "share")
        if judged.result == "pass":
            return None
        met = tuple(self.rails.met(place))
        result = judged.result if self._times(met) > 1 else "not_measured"
        finding = self._told(place, result, "contract", 0.0, met, detail="with the best of its partners")
        return msgspec.structs.replace(
            finding, metric="rail.line_share", unit="share", observed=best, expected=f"{judged.expected} of its line",
            threshold=judged.threshold,
        )  # fmt: skip

    def _times(self, met: tuple[Places, ...]) -> int:
        """How often these meetings were measured: nobody is blamed for one unrepeated sample."""
        assert self.rails.levels is not None
        levels = [self.rails.levels.of[one] for one in met]
        return sum(level.retests + (level.first is not None) for level in levels)

    def _line_share(self, place: str) -> float | None:
        subjects = (self.rails.subjects[met] for met in self.rails.met(place))
        values = (value for subject in subjects for value in self.figures.of("rail.line_share", subject))
        shares = [one.value for one in values if one.value is not None and one.params.get("bytes") == self.rails.bytes]
        return max(shares, default=None)

    def _open(self, place: str) -> Finding:
        """A suspect that no retest confirmed, or one of several that nothing measured tells apart."""
        culprit, doubt = self.culprits.get(place), self.doubts.get(place)
        if culprit is not None:
            again = several([rail_subject(met) for met in culprit.evidence], 2)
            result = self._seen(culprit.evidence)
            action = f"Measure {again} again, alone: only a loss seen again fails."
            return self._told(place, result, "peers", culprit.share, culprit.evidence, detail="", action=action)
        assert doubt is not None
        return self._doubtful(place, doubt)

    def _doubtful(self, place: str, doubt: Undecided) -> Finding:
        among = [*doubt.nodes, *(f"the link {rail_subject(met)}" for met in doubt.links)]
        said = f"one of these is slow, and nothing measured tells which: {several(among, 6)}"
        settle = several([rail_subject(met) for met in doubt.settle], 4)
        how = f"Measure {settle}: that would settle it." if settle else "Measure it with a node that is known good."
        if doubt.confirmed:
            return msgspec.structs.replace(self._not_measured(place, "undecided", said), action=how)
        shown = (doubt.shown_by,)
        return self._told(place, self._seen(shown), "peers", doubt.share, shown, detail=said, action=how)

    def _seen(self, met: tuple[Places, ...]) -> Result:
        """Retested and not clear, it warns; never retested, it is not judged."""
        assert self.rails.levels is not None
        retested = sum(self.rails.levels.of[one].retests > 1 for one in met)
        return "warn" if retested >= min(2, len(met)) else "not_measured"

    def _well(self, node: str, places: list[str]) -> Finding:
        assert self.rails.levels is not None
        best = {place: max(self.rails.levels.of[met].share for met in self.rails.met(place)) for place in places}
        slowest = min(best, key=lambda place: best[place])
        shares = [share for place in places if (share := self._line_share(place)) is not None]
        line = f"at least {percent(min(shares))} of the line" if shares else "the line rate is not known"
        met = tuple(self.rails.met(slowest))
        return self._told(node, "pass", "peers", best[slowest], met, detail=f"slowest: {slowest}; {line}")

    # --- links -----------------------------------------------------------------------------------------------

    def of_links(self) -> Iterator[Finding]:
        """Each path of one rail that is slow between two places which do better with others."""
        for culprit in self.links:
            assert culprit.pair is not None
            one, other = sorted(self._nodes(culprit.pair))
            finding = self._told(
                rail_subject(culprit.pair), "fail" if culprit.confirmed else self._seen(culprit.evidence), "peers",
                culprit.share, culprit.evidence, detail=f"{' and '.join(culprit.pair)} do better with others",
                action=f"Have the path of this rail between {one} and {other} looked at, or place no job on both.",
            )  # fmt: skip
            excludes = f"{one}~{other}" if finding.result == "fail" and self.check.excludable else None
            yield msgspec.structs.replace(finding, excludable=self.check.excludable, excludes=excludes)

    # --- all -------------------------------------------------------------------------------------------------

    def _told(
        self, subject: str, result: Result, layer: Layer, share: float, met: tuple[Places, ...], *, detail: str,
        action: str = "",
    ) -> Finding:  # fmt: skip
        levels = self.rails.levels
        assert levels is not None
        least = 1 - levels.thresholds.effect
        return msgspec.structs.replace(
            self._blank(subject, result),
            layer=layer,
            observed=float(f"{share * levels.ceiling:.6g}"),
            expected=f"at least {percent(least)} of the {figure(levels.ceiling, 'GB/s')} of good rails",
            threshold=float(f"{least * levels.ceiling:.6g}"),
            confidence="high" if result in ("pass", "fail") else "medium",
            reason="not_retested" if result == "not_measured" else "",
            detail=detail,
            action=action,
            evidence=self.rails.evidence(met)[:MOST_TRIALS],
        )

    def _not_measured(self, subject: str, reason: str, detail: str) -> Finding:
        return msgspec.structs.replace(self._blank(subject, "not_measured"), reason=reason, detail=detail)

    def _blank(self, subject: str, result: Result) -> Finding:
        params: Params = {"bytes": self.rails.bytes} if self.rails.bytes else {}
        target = Target(subject=subject, nodes=nodes_of(subject))
        finding = new_finding(self.check, target, result, self.figures.facts)
        return msgspec.structs.replace(finding, metric=RAIL, unit="GB/s", params=params, expected="measured")

    def _nodes(self, met: Places) -> set[str]:
        return set(nodes_of(rail_subject(met)))

    def _rate(self, share: float) -> str:
        return figure(share * (self.rails.levels.ceiling if self.rails.levels else 0.0), "GB/s")
