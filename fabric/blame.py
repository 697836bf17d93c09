"""Who is to blame for slow pairs: nodes, links, or one of a few that nothing measured so far tells apart.

A pair is as fast as the slowest of its two nodes and its link: bw_ij = min(node_i, node_j, link_ij). So
    a pair at the ceiling proves both of its nodes and its link;
    a node whose pairs are all slow, with two or more partners that are faster elsewhere, is itself slow: one fault
        explains what would otherwise take a fault of each link;
    a slow pair of two nodes that are both proven has a slow link;
    a node that met one faster partner only cannot be told from its link to that one: undecided.
Two fast nodes of four tell as much as fourteen of sixteen. (Median polish of log bandwidths, the product model, finds
one bad node of four in half of the cases and two of four never.)
"""

import math
import statistics
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass

from .capability import Capability, capability, upper_share
from .crowds import Crowd, crowd_of
from .explanations import explain
from .judgement import Blame, Culprit, Undecided
from .levels import Levels, Pair, pair_of
from .unsteady import unsteady_pairs

MOST_SETTLING = 2  # pairs named that would settle an undecided set, for each of its nodes
_LEAST_RETESTS = 2  # of a pair, before anybody is blamed for it
_FAINT = 0.5  # share of the ceiling: paths of a node below it stray by more than theirs above, of its own full queue
_MANY = 0.25  # more slow links than this share of pairs is no set of single faults


def blame(levels: Levels, *, crowds: bool = True) -> Blame:
    """Apply the min-model to levels. Without `crowds` each slow link stands for itself, however many there are."""
    return _Case(levels, crowds=crowds).judge()


@dataclass(kw_only=True, slots=True)
class _Shown:
    """A slow node under way: its level, and the pairs with faster partners that show it."""

    share: float
    pairs: list[Pair]


class _Case:
    def __init__(self, levels: Levels, *, crowds: bool) -> None:
        self.levels = levels
        self.crowds = crowds
        self.least = 1 - levels.thresholds.effect
        self.partners: dict[str, list[str]] = {}
        for one, other in levels.of:
            self.partners.setdefault(one, []).append(other)
            self.partners.setdefault(other, []).append(one)
        self.proven = {node for pair, level in levels.of.items() if level.share >= self.least for node in pair}
        self.slow: dict[str, _Shown] = {}
        self.certain_links: list[Pair] = []

    def judge(self) -> Blame:
        self._find_slow_nodes()
        undecided, hidden = self._explain_the_rest()
        links = {pair: self._link(pair) for pair in self._slow_pairs_of_known_nodes()}
        crowd = self._crowd(links)
        return Blame(
            levels=self.levels,
            nodes=tuple(self._node(node, shown) for node, shown in sorted(self.slow.items())),
            links=tuple(links[pair] for pair in crowd.single),
            undecided=tuple(undecided),
            capabilities=dict(self._capabilities(links.keys())),
            unsteady=tuple(unsteady_pairs(self.levels, self.least)),
            hidden=tuple(hidden),
            crowd=crowd,
        )

    def share(self, one: str, other: str) -> float:
        return self.levels.of[pair_of(one, other)].share

    def _known(self, node: str) -> float | None:
        """What a node can do: the whole for a proven one, its level for a slow one, None where it is not known."""
        if node in self.proven:
            return 1.0
        return self.slow[node].share if node in self.slow else None

    def _find_slow_nodes(self) -> None:
        """Nodes without a pair at the ceiling and with two partners that are faster than their pairs with it.

        A partner may be a slow node itself, if the pair is slower still: so again and again until nothing is new.
        """
        while new := dict(self._newly_slow()):
            self.slow |= new

    def _newly_slow(self) -> Iterator[tuple[str, _Shown]]:
        for node in self._unknown():
            faster = self._faster_partners(node)
            if len(faster) >= 2:
                pairs = [pair_of(node, partner) for partner in faster]
                pairs += self._better(node, upper_share(self.levels, pairs))
                yield node, _Shown(share=upper_share(self.levels, pairs), pairs=pairs)

    def _better(self, node: str, share: float) -> list[Pair]:
        """The node's best pair where that is clearly above what its pairs with faster partners show: a node is as fast
        as its best pair, so that one has to be measured again first."""
        best = max((pair_of(node, partner) for partner in self.partners[node]), key=lambda p: self.levels.of[p].share)
        return [best] if share < self.least * self.levels.of[best].share else []

    def _unknown(self) -> list[str]:
        return sorted(self.partners.keys() - self.proven - self.slow.keys())

    def _faster_partners(self, node: str) -> list[str]:
        """Partners that are known to do better than their pair with this node does."""
        known = ((partner, self._known(partner)) for partner in self.partners[node])
        return sorted(p for p, can in known if can is not None and self.share(node, p) < self.least * can)

    def _slow_pairs_of_known_nodes(self) -> Iterator[Pair]:
        yield from self.certain_links
        for pair, expected in self._expected():
            if pair not in self.certain_links and self.levels.of[pair].share < self._enough(expected):
                yield pair

    def _enough(self, expected: float) -> float:
        """The least share of a pair whose link is not slow. A node at a fifth has paths that differ by a tenth though
        nothing is wrong with any of them, and it is out for its own slowness: its link needs more to be named."""
        return expected - self.levels.thresholds.effect * max(expected, _FAINT)

    def _expected(self) -> Iterator[tuple[Pair, float]]:
        """What each pair of two nodes of which it is known what they can do should reach."""
        for pair in self.levels.of:
            ends = [able for node in pair if (able := self._known(node)) is not None]
            if len(ends) == len(pair):
                yield pair, min(ends)

    def _crowd(self, links: Mapping[Pair, Culprit]) -> Crowd:
        """Slow links one by one, or what a sample of so many tells; pairs that were slow at first and are not alone
        speak too."""
        of = self.levels.of
        if not self.crowds:
            return Crowd(single=tuple(links))
        well = [
            pair
            for pair, expected in self._expected()
            if of[pair].retests and of[pair].share >= self._enough(expected) > (of[pair].first or math.inf)
        ]
        between = sum(one in self.proven and other in self.proven for one, other in of)
        confirmed = {pair for pair, culprit in links.items() if culprit.confirmed}
        return crowd_of(self.levels, tuple(links), confirmed, well, max(_MANY * between, len(self.partners) / 2))

    def _link(self, pair: Pair) -> Culprit:
        level, error = self.levels.of[pair], self.levels.error(pair)
        margin = self.levels.wide * error
        expected = min(self._known(node) or 1.0 for node in pair)
        confirmed = level.retests >= _LEAST_RETESTS and self._clear(level.share, expected, error)
        return Culprit(
            pair=pair, share=level.share, low=level.share - margin, high=level.share + margin, evidence=(pair,),
            confirmed=confirmed,
        )  # fmt: skip

    def _node(self, node: str, shown: _Shown) -> Culprit:
        """Confirmed by retests, two or more, with each of two partners that do better with others, and of no pair that
        looks better than they show."""
        again = [pair for pair in shown.pairs if self.levels.of[pair].retests >= _LEAST_RETESTS]
        share = statistics.fmean(self.levels.of[pair].share for pair in again or shown.pairs)
        error = math.hypot(*(self.levels.error(pair) for pair in again)) / max(1, len(again))
        fastest = max((self.levels.of[pair].share for pair in again), default=0.0)
        unseen = [pair for pair in shown.pairs if fastest < self.least * self.levels.of[pair].share]
        confirmed = len(again) >= 2 and not unseen and self._clear(share, 1.0, error)
        able = capability(self.levels, shown.pairs)
        return Culprit(
            node=node, share=able.share, low=able.low, high=able.high, evidence=tuple(shown.pairs), confirmed=confirmed
        )  # fmt: skip

    def _clear(self, share: float, expected: float, error: float) -> bool:
        loss = expected - share
        return loss >= expected - self._enough(expected) and loss >= self.levels.thresholds.sigmas * error

    def _explain_the_rest(self) -> tuple[list[Undecided], list[str]]:
        """Nodes neither proven nor shown to be slow, in groups that met each other: by their smallest explanations.

        Of nodes that no explanation needs nothing can be said: they are hidden behind slow partners.
        """
        undecided: list[Undecided] = []
        left = set(self._unknown())
        hidden = set(left)
        while left:
            group = self._together(left)
            left -= group
            pairs = {pair: level.share for pair, level in self.levels.of.items() if group & set(pair)}
            known = {node: able for pair in pairs for node in pair if (able := self._known(node)) is not None}
            found = explain(pairs, known, self.levels.thresholds.effect)
            either = group | pairs.keys() if found.too_many else found.either
            for part in found.certain:
                self._keep_certain(part, pairs)
            if either:
                undecided.append(self._undecided(either, pairs))
            hidden -= {part for part in (*either, *found.certain) if isinstance(part, str)}
        return undecided, sorted(hidden)

    def _keep_certain(self, part: str | Pair, pairs: Mapping[Pair, float]) -> None:
        if isinstance(part, str):
            own = [pair for pair in pairs if part in pair]
            self.slow[part] = _Shown(share=max(pairs[pair] for pair in own), pairs=own)
        else:
            self.certain_links.append(part)

    def _together(self, nodes: set[str]) -> set[str]:
        """One of these nodes with all that it is connected with among them."""
        group, edge = set[str](), [min(nodes)]
        while edge:
            node = edge.pop()
            group.add(node)
            edge += [partner for partner in self.partners[node] if partner in nodes - group]
        return group

    def _undecided(self, either: Iterable[str | Pair], pairs: Mapping[Pair, float]) -> Undecided:
        nodes = sorted(part for part in either if isinstance(part, str))
        links = sorted(part for part in either if not isinstance(part, str))
        best = max((pair for pair in pairs if pair in links or set(pair) & set(nodes)), key=lambda pair: pairs[pair])
        level = self.levels.of[best]
        confirmed = level.retests >= _LEAST_RETESTS and self._clear(level.share, 1.0, self.levels.error(best))
        settle = dict.fromkeys(pair for node in nodes for pair in self._settling(node))
        return Undecided(
            nodes=tuple(nodes), links=tuple(links), share=level.share, shown_by=best, settle=tuple(settle),
            confirmed=confirmed,
        )  # fmt: skip

    def _settling(self, node: str) -> list[Pair]:
        """Pairs with proven nodes that this one has not met."""
        unmet = sorted(self.proven - set(self.partners[node]) - {node})
        return [pair_of(node, partner) for partner in unmet[:MOST_SETTLING]]

    def _capabilities(self, slow_links: Set[Pair]) -> Iterator[tuple[str, Capability]]:
        """Of each node, from its pairs with proven partners over links that are not slow."""
        for node, partners in sorted(self.partners.items()):
            pairs = [pair_of(node, partner) for partner in partners if partner in self.proven]
            pairs = [pair for pair in pairs if pair not in slow_links]
            if pairs and self._known(node) is not None:
                yield node, capability(self.levels, pairs)
