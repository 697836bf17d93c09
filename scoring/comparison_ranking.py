"""The order of runs, and why: by money where every run has a price, else by useful throughput, else by training speed.

What can be signed stands first, then what was not decided, and what is NO-GO last, whatever it costs.
"""

from collections.abc import Iterator, Mapping, Sequence

from .comparison_model import Contrast, Entrant, MetricCompared, Place, Ranking
from .words import percent

MOST_REASONS = 3
_BY = ("money", "useful", "training")


def ranked(runs: Sequence[Entrant], metrics: Sequence[MetricCompared], why_not: Mapping[str, Sequence[str]]) -> Ranking:
    """The ranking by the first figure that can rank. `why_not` says by figure and run why it has none."""
    by = _ranking_figure(runs, metrics)
    if by is None:
        reasons = {run.letter: why_not["useful"][place] for place, run in enumerate(runs)}
        return Ranking(by="", title="", places=(), unranked=tuple(_with_reasons(reasons)))
    order = _order(by, runs)
    places = tuple(
        Place(
            place=place, letter=letter, tied=_tied(by, letter),
            reasons=tuple(_reasons(letter, order, by, metrics, runs)),
        )
        for place, letter in enumerate(order, 1)
    )  # fmt: skip
    left = {run.letter: why_not[by.key][place] for place, run in enumerate(runs) if run.letter not in order}
    return Ranking(by=by.key, title=by.title, places=places, unranked=tuple(_with_reasons(left)))


def _with_reasons(left: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for letter, why in left.items():
        yield letter, why or "nothing that ranks can be compared with the others: see what differs"


def _ranking_figure(runs: Sequence[Entrant], metrics: Sequence[MetricCompared]) -> MetricCompared | None:
    found = {one.key: one for one in metrics if one.compared}
    if any(run.price_per_gpu_hour is None for run in runs):
        found.pop("money", None)
    return next((found[key] for key in _BY if key in found), None)


def _order(by: MetricCompared, runs: Sequence[Entrant]) -> list[str]:
    """The largest set of runs that may be compared with each other, what can be signed first, of that the best."""
    with_each: dict[str, set[str]] = {}
    for contrast in by.contrasts:
        with_each.setdefault(contrast.first, {contrast.first}).add(contrast.second)
        with_each.setdefault(contrast.second, {contrast.second}).add(contrast.first)
    among = max(with_each.values(), key=len)
    values = {one.letter: one.value for one in by.standings if one.value is not None and one.letter in among}
    behind = {run.letter: standing_of(run) for run in runs}
    sign = -1 if by.better == "higher" else 1
    return sorted(values, key=lambda letter: (behind[letter], sign * values[letter], letter))


def standing_of(run: Entrant) -> int:
    """0 for what can be signed, 1 for what decides nothing (INCONCLUSIVE, a policy that is not for signing), 2 for
    NO-GO."""
    return 2 if run.verdict == "NO_GO" else int(not run.signable)


def _tied(by: MetricCompared, letter: str) -> tuple[str, ...]:
    return tuple(
        other
        for contrast in by.contrasts
        if letter in (contrast.first, contrast.second) and not contrast.told_apart
        for other in (contrast.first, contrast.second)
        if other != letter
    )


def _reasons(  # a place among places
    letter: str, order: Sequence[str], by: MetricCompared, metrics: Sequence[MetricCompared], runs: Sequence[Entrant]
) -> Iterator[str]:
    """Against the best one, of the best one against the next: the figure that ranks, then the widest differences."""
    run = next(one for one in runs if one.letter == letter)
    if run.verdict == "NO_GO":
        yield "NO-GO: cannot be used as it stands"
    if run.verdict == "INCONCLUSIVE":
        yield "INCONCLUSIVE: something required was not measured, so there is nothing to sign"
    other = order[0] if letter != order[0] else order[1]
    if said := against(by, letter, other):
        yield said
    rest = [(one, found) for one in metrics if one.key != by.key and (found := _between(one, letter, other))]
    told = [(one, found) for one, found in rest if found.told_apart and one.key not in _BY[:2]]
    told.sort(key=lambda pair: -abs(pair[1].ratio - 1))
    for one, _ in told[:MOST_REASONS]:
        yield against(one, letter, other) or ""


def _between(one: MetricCompared, letter: str, other: str) -> Contrast | None:
    return next((found for found in one.contrasts if {found.first, found.second} == {letter, other}), None)


def against(one: MetricCompared, letter: str, other: str) -> str | None:
    """'Training speed: 9.1 % below A (5.2 to 12.8 %)'; None where the two were not told apart or not compared."""
    found = _between(one, letter, other)
    if found is None or not found.told_apart:
        return None
    ratio, low, high = _as_seen_by(found, letter)
    word = _WORDS[one.key == "money", one.unit == "s"][ratio > 1]
    ends = sorted((abs(low - 1), abs(high - 1)))
    explained = f", may be due to {', '.join(found.may_explain)}" if found.may_explain else ""
    size = f"{percent(abs(ratio - 1))} {word} {other} ({percent(ends[0])} to {percent(ends[1])})"
    return f"{one.title}: {size}{explained}"


_WORDS: dict[tuple[bool, bool], tuple[str, str]] = {
    (True, False): ("cheaper than", "dearer than"),
    (False, True): ("shorter than", "longer than"),
    (False, False): ("below", "above"),
}


def _as_seen_by(found: Contrast, letter: str) -> tuple[float, float, float]:
    if found.first == letter:
        return found.ratio, found.low, found.high
    return 1 / found.ratio, 1 / found.high, 1 / found.low
