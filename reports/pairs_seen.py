"""A run's pairs of nodes as the page tells of them: each pair's values, who is to blame, what comes next."""

from collections import defaultdict
from collections.abc import Iterable
from functools import cached_property

from ..evidence import Run
from ..fabric import Blame, Culprit, Level, Pair, Undecided
from ..scoring.pair_checks import PAIR_RULES
from ..scoring.pairs import PairFigures, pairs_of
from ..scoring.verdict import Finding, Verdict
from .numbers import figure, percent
from .plain_text import listed, natural, printable

UNIT = "GB/s"


class PairsSeen:
    """The min-model's judgement of a run that has a pair with a value, with the words for it."""

    def __init__(self, figures: PairFigures, judged: Blame, verdict: Verdict) -> None:
        self.figures = figures
        self.blame = judged
        self.levels = judged.levels
        self.least = 1 - judged.levels.thresholds.effect
        self.nodes = sorted({node for pair in (*judged.levels.of, *figures.missing) for node in pair}, key=natural)
        self._findings = {each.subject: each for each in verdict.findings if each.check in PAIR_RULES}
        self._culprits = {each.node: each for each in judged.nodes if each.node}
        self._links = {each.pair: each for each in judged.links if each.pair}

    @cached_property
    def alone(self) -> dict[Pair, list[float]]:
        """Each retested pair's values, GB/s, in their order."""
        return _by_pair((one.pair, one.value) for one in self.figures.seen if one.alone)

    @cached_property
    def beside(self) -> dict[Pair, list[float]]:
        """Each pair's values of the tournament, beside other pairs."""
        return _by_pair((one.pair, one.value) for one in self.figures.seen if not one.alone)

    @property
    def of_all(self) -> int:
        """How many pairs these nodes make."""
        return len(self.nodes) * (len(self.nodes) - 1) // 2

    @property
    def sampled(self) -> bool:
        """Whether a few partners a node were planned rather than everybody: under half of all pairs."""
        return 2 * len(self.levels.of.keys() | self.figures.missing.keys()) < self.of_all

    @property
    def controls(self) -> list[Pair]:
        """Good pairs that were measured again for the sake of comparison."""
        return [pair for pair in self.alone if self.level(pair).share >= self.least and pair not in self.blame.unsteady]

    def level(self, pair: Pair) -> Level:
        """A pair's level."""
        return self.levels.of[pair]

    def name(self, pair: Pair) -> str:
        """A pair as the run writes it."""
        return printable(self.figures.subjects.get(pair) or "~".join(pair), 160)

    def rate(self, share: float) -> str:
        """A share of the usual in GB/s."""
        return figure(share * self.levels.ceiling, UNIT)

    def finding(self, subject: str) -> Finding | None:
        """What the verdict says of the bandwidth of a node or pair."""
        return self._findings.get(subject)

    def culprits_of(self, pair: Pair) -> list[Culprit]:
        """The slow nodes among a pair's two."""
        return [self._culprits[node] for node in pair if node in self._culprits]

    def doubt_of(self, pair: Pair) -> Undecided | None:
        """The undecided set that a pair belongs to."""
        return next((each for each in self.blame.undecided if pair in each.links or set(pair) & set(each.nodes)), None)

    def stands_out(self, pair: Pair) -> bool:
        """Whether a pair is slower than it should be, or was at first. One that only others slowed does not."""
        slow = self.level(pair).share < self.least and pair not in self.blame.crowd.contended
        return slow or pair in self.blame.unsteady

    def blamed(self, pair: Pair) -> tuple[str, str]:
        """Who is to blame for a pair, and what to do or measure next."""
        nodes, link, doubt = self.culprits_of(pair), self._links.get(pair), self.doubt_of(pair)
        if link is not None:
            sure = "the link between them" if link.confirmed else "the link between them, not confirmed"
            return sure, self._action(self.name(pair))
        if nodes:
            return self._blamed_nodes(nodes)
        return (self.one_of(doubt), self.settling(doubt)) if doubt is not None else self._blamed_nobody(pair)

    def _blamed_nobody(self, pair: Pair) -> tuple[str, str]:
        if pair in self.blame.unsteady:
            return "nobody when alone: it is slow only beside others", "See what shares its path, then run again."
        if pair in self.blame.split:
            return "a slower level of the fabric", "Compare with the cabling: leaves, or an oversubscribed level."
        if pair in self.blame.crowd.contended:
            return "nobody: slow beside others, and such pairs are well alone", ""
        if pair in self.blame.crowd.unsampled:
            return "not known: too few of so many were measured alone", "Run again with room for retests."
        if set(pair) & set(self.blame.hidden):
            return "not known: a node of it met slow partners only", "Measure it with a node that is good."
        return "nobody: less than noise and retests allow to say", ""

    def slow_words(self) -> str:
        """Who is slow between nodes, in one sentence."""
        nodes = [printable(each.node, 80) for each in self.blame.nodes]
        outliers = [*nodes, *(f"the link {self.name(each.pair)}" for each in self.blame.links if each.pair)]
        if outliers:
            return f"Slow between nodes: {listed(outliers, 4)}."
        if len(self.levels.of) < 2:
            return ""
        if self.blame.undecided:
            return f"Slow between nodes, and not told apart: {self.one_of(self.blame.undecided[0])}."
        if self.blame.unsteady:
            return f"Slow beside others only: {listed(map(self.name, self.blame.unsteady), 3)}."
        if self.blame.crowd.unsampled:
            return "Too few slow pairs were measured alone to tell levels of the fabric from contention."
        return "Pairs show two levels of the fabric." if self.blame.split else "No node and no link stands out."

    def one_of(self, doubt: Undecided) -> str:
        """The members of an undecided set."""
        links = [f"the link {self.name(pair)}" for pair in doubt.links]
        return f"one of {listed([*(printable(node, 80) for node in doubt.nodes), *links], 6)}"

    def settling(self, doubt: Undecided) -> str:
        """What would settle an undecided set."""
        pairs = [self.name(pair) for pair in doubt.settle]
        return f"Measure {listed(pairs, 4)}: that tells." if pairs else "Measure it with a node that is known good."

    def share(self, pair: Pair) -> str:
        """A pair's share of the usual, in words."""
        return percent(self.level(pair).share)

    def _blamed_nodes(self, nodes: list[Culprit]) -> tuple[str, str]:
        names = " and ".join(printable(each.node, 80) for each in nodes)
        if all(each.confirmed for each in nodes):
            return f"{names}, slow with each partner", self._action(nodes[0].node or "")
        return f"{names}, not confirmed", self._action(next(each.node or "" for each in nodes if not each.confirmed))

    def _action(self, subject: str) -> str:
        found = self.finding(subject)
        return printable(found.action, 300) if found else ""


def pairs_seen(run: Run, verdict: Verdict) -> PairsSeen | None:
    """A run's pairs; None where no pair has a value."""
    figures = pairs_of(run)
    return PairsSeen(figures, figures.blame, verdict) if figures.blame else None


def _by_pair(values: Iterable[tuple[Pair, float]]) -> dict[Pair, list[float]]:
    found: dict[Pair, list[float]] = defaultdict(list)
    for pair, value in values:
        found[pair].append(value)
    return dict(found)
