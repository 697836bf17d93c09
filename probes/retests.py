"""Bad values are measured again before anybody is blamed: for probes whose trials stay within a node.

After the first rounds whoever is an outlier among its peers, or falls short of what is demanded of it, is measured
again on its whole node, as before, and good nodes beside it: what has changed meanwhile shows there. One retest settles
a value that is bad twice or fine the second time; who becomes bad only in a retest gets one more.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import msgspec

from ..cluster import Cluster, Outcome, Round, TimedOut, Trial, WorkerLost
from ..evidence import Missing, Params, Reading, metric, value_of_samples
from ..evidence.records import Scalar
from ..outliers import Threshold, controls, suspects
from .protocol import Plan

_Place = tuple[int, int]  # of a trial: its round, and where in it
_ParamsKey = tuple[tuple[str, Scalar], ...]
_Group = tuple[str, _ParamsKey, Scalar | None]  # metric, params and kind of accelerator: who is compared


@dataclass(frozen=True, kw_only=True, slots=True)
class Watched:
    """A metric whose bad values are measured again: the smallest effect that matters, and for which params."""

    metric: str
    effect: float = 0.05
    where: Callable[[Params], bool] = lambda params: True


def with_retests(
    cluster: Cluster, rounds: Sequence[Round], watched: Sequence[Watched], *, all_again: bool = False
) -> Plan:  # fmt: skip
    """The rounds, and then retests of what was bad in them.

    `all_again`: a retest takes every node of the round, for they contend for something (a filesystem) and one alone
    would meet other conditions.
    """
    campaign = _Campaign(cluster, rounds, watched, all_again=all_again)
    for number, trials in enumerate(rounds):
        places = [(number, place) for place in range(len(trials))]
        campaign.learn(places, trials, (yield trials))
    while again := campaign.wanted():
        for nodes_of in again:
            places = [place for place, _ in nodes_of]
            trials = [campaign.trial_again(place, node) for place, node in nodes_of]
            campaign.learn(places, trials, (yield trials))


class _Campaign:
    """What was seen so far, and where."""

    def __init__(
        self, cluster: Cluster, rounds: Sequence[Round], watched: Sequence[Watched], *, all_again: bool
    ) -> None:  # fmt: skip
        self.cluster = cluster
        self.rounds = rounds
        self.watched = {one.metric: one for one in watched}
        self.all_again = all_again
        self.attempts: dict[_Group, dict[str, list[float]]] = defaultdict(dict)
        self.place: dict[tuple[_Group, str], _Place] = {}
        self.first: dict[_Place, str | None] = {}
        self.tried: dict[tuple[_Place, str], int] = defaultdict(lambda: 1)
        self.gone: set[str] = set()

    def learn(self, places: Sequence[_Place], trials: Sequence[Trial], outcomes: Sequence[Outcome]) -> None:
        """Keep the watched values of a round's trials. What a retest does not bring is not asked for again."""
        for place, trial, outcome in zip(places, trials, outcomes, strict=True):
            self.first.setdefault(place, outcome.trial)
            if isinstance(outcome, WorkerLost | TimedOut):
                self.gone |= {_node(subject) for subject in outcome.subjects}
            brought = {(one.metric, one.subject, _key(one.params)): one for one in _values(outcome)}
            for fill in trial.fills:
                found = brought.get((fill.metric, fill.subject, _key(fill.params)))
                self._keep(place, fill.metric, fill.subject, fill.params, found)

    def _keep(self, place: _Place, name: str, subject: str, params: Params, found: Reading | Missing | None) -> None:
        watched = self.watched.get(name)
        if watched is None or not watched.where(params):
            return
        group = (name, _key(params), self.cluster.fact(subject, "accelerator.name"))
        value = value_of_samples(name, found.samples) if isinstance(found, Reading) else None
        if value is None or not math.isfinite(value):
            self.attempts[group].pop(subject, None)
            return
        self.attempts[group].setdefault(subject, []).append(value)
        self.place[group, subject] = place

    def wanted(self) -> list[list[tuple[_Place, str]]]:
        """The trials to repeat and on which node, a round each; none where all is settled."""
        again: dict[tuple[_Place, str], None] = {}
        for group, attempts in self.attempts.items():
            for subject in self._again(group, attempts):
                again |= dict.fromkeys(self._with_neighbours(self.place[group, subject], _node(subject)))
        left = [(place, node) for place, node in again if node not in self.gone]
        numbers = sorted({place[0] for place, _ in left})
        return [sorted(one for one in left if one[0][0] == number) for number in numbers]

    def _again(self, group: _Group, attempts: dict[str, list[float]]) -> list[str]:
        """Suspects of one group that can be measured again, and good ones on other nodes beside them."""
        name, key, _ = group
        better, doubts = metric(name).better, self.cluster.doubts

        def doubted(subject: str, value: float) -> bool:
            return doubts is not None and doubts(name, subject, dict(key), value)

        threshold = Threshold(effect=self.watched[name].effect)
        bad = [one for one in suspects(attempts, better, threshold, doubted) if _node(one) not in self.gone]
        taken = {_node(subject) for subject in bad} | self.gone
        of_these = [subject for subject in attempts if _node(subject) in taken]
        return bad + controls(attempts, better, of_these) if bad else []

    def _with_neighbours(self, place: _Place, node: str) -> Iterator[tuple[_Place, str]]:
        if not self.all_again:
            yield place, node
            return
        for index, trial in enumerate(self.rounds[place[0]]):
            yield from (((place[0], index), name) for name in dict.fromkeys(rank.node for rank in trial.ranks))

    def trial_again(self, place: _Place, node: str) -> Trial:
        """The trial once more, on one of its nodes."""
        trial = self.rounds[place[0]][place[1]]
        ranks = tuple(rank for rank in trial.ranks if rank.node == node)
        assert not trial.collective or ranks == trial.ranks, "a collective across nodes is another thing on one of them"
        self.tried[place, node] += 1
        return msgspec.structs.replace(
            trial,
            ranks=ranks,
            fills=tuple(fill for fill in trial.fills if _node(fill.subject) == node),
            attempt=self.tried[place, node],
            retest_of=self.first[place],
        )


def _values(outcome: Outcome) -> Iterator[Reading | Missing]:
    return (one for one in outcome.readings if isinstance(one, Reading | Missing))


def _node(subject: str) -> str:
    """n01 of n01, n01/gpu2, n01/numa0 and n01/fs:/scratch."""
    return subject.partition("/")[0]


def _key(params: Params) -> _ParamsKey:
    return tuple(sorted(params.items()))
