"""Runs put side by side: what is comparable, what differs and by how much, and what cannot be told apart."""

import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import combinations, islice
from typing import Literal

from ..evidence import Run, metric
from ..evidence.reading import collector_paused
from ..references import run_spreads
from .comparison_clusters import clusters, repeated
from .comparison_differences import differences, explaining, like
from .comparison_figures import TRAINING, Compared, Figure, Lacking, chosen
from .comparison_intervals import Apart, Between, apart, between_runs, interval, not_told_apart
from .comparison_model import Comparison, Contrast, Entrant, MetricCompared, Standing
from .comparison_ranking import ranked
from .comparison_sides import EVERYTHING, ComparisonError, Side, side_of
from .values import ParamsKey
from .words import counted, params_in_words, percent

MOST_RUNS = 10
LETTERS = "ABCDEFGHIJ"
Ends = tuple[int, int]


def compare(runs: Iterable[Run], history: Iterable[Run] = ()) -> Comparison:
    """Put two to ten runs side by side; `history` are further runs of the same clusters, for the variance from run to
    run. One run is held at a time. Raises ComparisonError where there are too few, too many, or one twice."""
    with collector_paused():
        sides = [side_of(run) for run in islice(runs, MOST_RUNS + 1)]
    _refuse_odd(sides)
    named = {side.header.run_id for side in sides}
    earlier: list[Side] = []
    left_out: list[str] = []
    for run in history:
        try:
            earlier += [side_of(run)] if run.header.run_id not in named else []
        except ComparisonError as error:
            left_out.append(f"Left out of the history: {error}")
    return compare_sides(sides, earlier, left_out)


def compare_sides(sides: Sequence[Side], earlier: Sequence[Side] = (), notes: Sequence[str] = ()) -> Comparison:
    """The same with runs that were judged before; `notes` are to be told beside."""
    settings = {what.key: _shared(what, sides) for what in EVERYTHING}
    ends = {what.key: list(_ends(what, settings[what.key], sides)) for what in EVERYTHING}
    count = sum(map(len, ends.values()))
    same = clusters([*sides, *earlier])
    found = tuple(
        _compared(what, settings[what.key], ends[what.key], [*sides, *earlier], len(sides), same, count)
        for what in EVERYTHING
        if settings[what.key] is not None or ends[what.key]
    )
    entrants = tuple(_entrant(letter, side) for letter, side in zip(LETTERS, sides, strict=False))
    return Comparison(
        runs=entrants, differences=differences(sides, settings), metrics=found, comparisons=count,
        ranking=ranked(entrants, found, {what.key: [_why_not(side, what) for side in sides] for what in EVERYTHING}),
        history=len(earlier), notes=(*notes, *_notes(found)),
    )  # fmt: skip


def _refuse_odd(sides: Sequence[Side]) -> None:
    if len(sides) < 2:
        raise ComparisonError(f"{counted(len(sides), 'run')}: two to {MOST_RUNS} can be compared")
    if len(sides) > MOST_RUNS:
        raise ComparisonError(f"over {MOST_RUNS} runs: two to {MOST_RUNS} can be compared")
    seen: dict[str, Side] = {}
    for side in sides:
        other = seen.setdefault(side.header.run_id, side)
        if other is not side:
            raise ComparisonError(f"{side.path} and {other.path} are the same run, {side.header.run_id[:80]}")


def _shared(what: Compared, sides: Sequence[Side]) -> ParamsKey | None:
    """The params that a figure is compared with: those that most runs share."""
    return chosen([one for side in sides if not isinstance(one := side.settings[what.key], Lacking)])


def _figure(side: Side, what: Compared, key: ParamsKey | None) -> Figure | None:
    settings = side.settings[what.key]
    return None if isinstance(settings, Lacking) or key is None else settings.get(key)


def _why_not(side: Side, what: Compared) -> str:
    settings = side.settings[what.key]
    return side.barred or (settings.why if isinstance(settings, Lacking) else "")


def _ends(what: Compared, key: ParamsKey | None, sides: Sequence[Side]) -> Iterator[Ends]:
    """The pairs of runs whose figures may be compared."""
    for one, other in combinations(range(len(sides)), 2):
        both = (sides[one], sides[other])
        measured = all(_figure(side, what, key) and not side.barred for side in both)
        if measured and like(both[0], what) == like(both[1], what):
            yield one, other


def _compared(  # noqa: PLR0917  # a figure with all that it is compared by
    what: Compared,
    key: ParamsKey | None,
    ends: Sequence[Ends],
    everyone: Sequence[Side],
    count: int,
    same: Sequence[int],
    comparisons: int,
) -> MetricCompared:
    """One figure over the first `count` of `everyone`; the rest is history."""
    figures = [_figure(side, what, key) for side in everyone]
    on_cpus = any(everyone[place].header.device == "cpu" for both in ends for place in both)
    between = _Between(what, key, everyone, same, on_cpus=on_cpus)
    described, unit = metric(what.metric), _unit(what)
    better: Literal["higher", "lower"] = "lower" if what.key == "money" or described.better == "lower" else "higher"
    apart_by = {
        (one, other): apart(first, second, between.of({one, other}), comparisons)
        for one, other in ends
        if (first := figures[one]) is not None and (second := figures[other]) is not None
    }
    contrasts = tuple(
        _contrast(what, (everyone[one], everyone[other]), (one, other), found, better)
        for (one, other), found in apart_by.items()
    )
    became_another = {end for ends, found in apart_by.items() if found.told_apart for end in ends}
    overall, groups = between.of(became_another), _groups(figures, list(apart_by), better)
    return MetricCompared(
        key=what.key, title=what.title, metric=what.metric, unit=unit, better=better,
        measured_with=params_in_words(dict(key or ())), spread=overall.spread, basis=between.basis(overall),
        standings=_standings(what, figures[:count], everyone[:count], overall, groups),
        contrasts=contrasts, comparable=tuple(map(_letters, groups)),
        alike=tuple(_letters(stretch) for group in groups for stretch in _alike(group, apart_by)),
    )  # fmt: skip


class _Between:
    """The variance of one figure from run to run, by the stated default and by runs of a cluster that was run again.

    Money and useful throughput vary as training does: a price and the nodes that are out are known, and no noise.
    """

    def __init__(
        self, what: Compared, key: ParamsKey | None, everyone: Sequence[Side], same: Sequence[int], *, on_cpus: bool
    ) -> None:
        varies = TRAINING if what.category == "training" else what
        self._spreads = run_spreads()
        self._default = self._spreads.on_cpus if on_cpus else self._spreads.of(varies.metric, varies.each)
        figures = [_figure(side, varies, key) for side in everyone]
        self._logs = {place: math.log(one.value) for place, one in enumerate(figures) if one is not None}
        self._same, self._kinds = same, [like(side, varies) for side in everyone]

    def of(self, compared: Collection[int]) -> Between:
        """Without those of the runs compared that are of one cluster: their own difference must not excuse itself."""
        of_each = Counter(self._same[place] for place in compared)
        out = [place for place in compared if of_each[self._same[place]] > 1]
        logs = repeated(self._logs, self._same, self._kinds, out)
        return between_runs(self._default.spread, self._spreads.weight, logs)

    def basis(self, found: Between) -> str:
        """Where the variance is from, in words."""
        source = self._spreads.sources[self._default.source].name
        default = f"default {percent(self._default.spread)} ({source})"
        return f"{default}, moderated by {counted(found.repeats, 'repeated run')}" if found.repeats else default


def _unit(what: Compared) -> str:
    return "USD" if what.key == "money" else metric(what.metric).unit


def _groups(figures: Sequence[Figure | None], ends: Sequence[Ends], better: str) -> list[list[int]]:
    """The runs that may be compared with each other, the best of each group first."""
    groups: dict[int, set[int]] = {}
    for one, other in ends:  # in order: the first run of a group meets all others of it first
        first = next((place for place, members in groups.items() if one in members), one)
        groups.setdefault(first, {one}).add(other)
    value = {place: one.value for place, one in enumerate(figures) if one is not None}
    return [sorted(group, key=lambda place: value[place], reverse=better == "higher") for group in groups.values()]


def _letters(places: Sequence[int]) -> tuple[str, ...]:
    return tuple(LETTERS[place] for place in places)


def _standings(
    what: Compared,
    figures: Sequence[Figure | None],
    sides: Sequence[Side],
    between: Between,
    groups: Sequence[Sequence[int]],
) -> tuple[Standing, ...]:
    best = {place: figures[group[0]] for group in groups for place in group}
    return tuple(
        Standing(letter=letter, why_not=_why_not(side, what) or "measured with other settings")
        if one is None
        else _standing(letter, one, between, best.get(place), side.barred)
        for place, (letter, one, side) in enumerate(zip(LETTERS, figures, sides, strict=False))
    )


def _standing(letter: str, one: Figure, between: Between, best: Figure | None, barred: str) -> Standing:
    low, high = interval(one, between)
    share = None if best is None else min(one.value / best.value, best.value / one.value)
    return Standing(
        letter=letter, value=one.value, low=low, high=high, share=share, subjects=one.subjects, why_not=barred
    )  # fmt: skip


def _contrast(what: Compared, sides: tuple[Side, Side], ends: Ends, found: Apart, better: str) -> Contrast:
    first, second = (LETTERS[end] for end in ends)
    ahead = first if (found.ratio > 1) == (better == "higher") else second
    return Contrast(
        first=first, second=second, ratio=found.ratio, low=found.low, high=found.high, told_apart=found.told_apart,
        better=ahead if found.told_apart else None, may_explain=explaining(*sides, what) if found.told_apart else (),
    )  # fmt: skip


def _alike(group: Sequence[int], apart_by: dict[Ends, Apart]) -> list[tuple[int, ...]]:
    return not_told_apart(group, (ends for ends, found in apart_by.items() if found.told_apart))


def _entrant(letter: str, side: Side) -> Entrant:
    header, verdict = side.header, side.verdict
    name = "cpu" if header.device == "cpu" else side.most("accelerator.name")
    marks = (*verdict.caveats, *((f"Not compared: {side.barred}.",) if side.barred else ()))
    return Entrant(
        letter=letter, run_id=header.run_id, provider=header.provider or "", cluster=header.cluster or "",
        nodes=len(header.promised), accelerators=side.accelerators, accelerator=name,
        started=side.started, price_per_gpu_hour=header.price_per_gpu_hour, verdict=verdict.verdict,
        signable=verdict.signable, excluded=verdict.exclude, marks=marks, delivery=side.delivery,
    )  # fmt: skip


def _notes(found: Sequence[MetricCompared]) -> Iterator[str]:
    lonely = [one.title for one in found if not one.compared]
    if lonely:
        yield f"Measured, and comparable in no two runs: {', '.join(lonely)}."
    absent = [what.title for what in EVERYTHING if what.key not in {one.key for one in found}]
    if absent:
        yield f"Measured in no run: {', '.join(absent)}."
