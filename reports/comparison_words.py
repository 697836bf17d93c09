"""A comparison in words: what the page and the terminal both say."""

from collections.abc import Iterator, Sequence

from ..scoring.comparison_model import Comparison, Entrant, MetricCompared, Standing
from ..scoring.comparison_ranking import against, standing_of
from .first_screen import WORDS
from .numbers import NOTHING, dollars, figure, number_of, percent, significant, span
from .plain_text import printable

_BRANDS = ("NVIDIA ", "AMD Instinct ", "AMD ")
_MOST_NAMED = 3


def name_of(run: Entrant, most: int = 80) -> str:
    """A run's letter, provider and cluster: A · Provider A fra-2."""
    who = " ".join(part for part in (run.provider, run.cluster) if part) or run.run_id
    return f"{run.letter} · {printable(who, most)}"


def shape_of(run: Entrant) -> str:
    """Nodes and accelerators: 4 nodes, 32 x H100 80GB HBM3."""
    name = run.accelerator
    for brand in _BRANDS:
        name = name.removeprefix(brand)
    kind = "CPU slot" if name == "cpu" else printable(name, 60)
    return f"{number_of(run.nodes, 'node')}, {run.accelerators:,} \N{MULTIPLICATION SIGN} {kind}"


def price_words(run: Entrant) -> str:
    """Its price, or that it has none."""
    return "not given" if run.price_per_gpu_hour is None else f"{run.price_per_gpu_hour:.2f}"


def verdict_words(run: Entrant) -> str:
    """Its verdict, and whether that may be signed."""
    return WORDS[run.verdict] + ("" if run.signable else ", not signable")


def headline(found: Comparison) -> str:
    """The comparison in a sentence: who is first, and from whom it can be told apart."""
    if not found.comparable:
        return "Nothing of these runs can be compared: what differs forbids it."
    places = found.ranking.places
    if not places:
        return "The runs cannot be ranked; figures that can be compared stand below."
    first = places[0]
    by = next(one for one in found.metrics if one.key == found.ranking.by)
    beaten = {run for each in by.contrasts if each.better == first.letter for run in (each.first, each.second)}
    told = [f"{first.letter} is ahead of {joined(sorted(beaten - {first.letter}))}"] if beaten else []
    if first.tied:
        told.append(f"{joined(sorted([first.letter, *first.tied]))} cannot be told apart")
    return f"By {lowered(by.title)}: {'; '.join([*told, *_behind(found, first.letter)])}."


def _behind(found: Comparison, first: str) -> Iterator[str]:
    """What stands behind whatever its figure, because of its verdict, and whether anything can be signed at all."""
    runs = {run.letter: run for run in found.runs}
    ranked = [runs[place.letter] for place in found.ranking.places]
    least = standing_of(runs[first])
    for standing, why in ((1, "there is nothing to sign"), (2, "not to be used as delivered")):
        behind = [run for run in ranked if standing_of(run) == standing > least]
        for word in dict.fromkeys(WORDS[run.verdict] for run in behind):
            letters = sorted(run.letter for run in behind if WORDS[run.verdict] == word)
            verbs = ("is", "stands") if len(letters) == 1 else ("are", "stand")
            yield f"{joined(letters)} {verbs[0]} {word} and {verbs[1]} behind: {why}"
    if least:
        yield "none can be signed"


def message(one: MetricCompared) -> str:
    """A figure's message: who is best, who is told apart from it and by how much, who is not."""
    return f"{one.title}: {'; '.join(part for letters in one.comparable for part in _message(one, letters))}"


def _message(one: MetricCompared, letters: Sequence[str]) -> list[str]:
    best = letters[0]
    said = {letter: against(one, letter, best) for letter in letters[1:]}
    told = [f"{letter} is {words.partition(': ')[2].partition(' (')[0]}" for letter, words in said.items() if words]
    if len(told) > _MOST_NAMED:
        told = [*told[:_MOST_NAMED], f"{len(told) - _MOST_NAMED} more are told apart"]
    alike = [letter for letter, words in said.items() if words is None]
    return [*told, *([f"{joined(sorted([best, *alike]))} cannot be told apart"] if alike else [])]


def alike_in(found: Comparison) -> str:
    """The figures in which nothing is told apart: they need no chart."""
    titles = [lowered(one.title) for one in found.metrics if one.compared and not drawn(found, one)]
    return f"In {joined(titles)} no two runs can be told apart." if titles else ""


def alike_words(one: MetricCompared) -> str:
    """Who cannot be told apart from whom."""
    if not one.contrasts:
        return "nothing compared"
    if one.alike == one.comparable and len(one.alike) == 1:
        return "all"
    return "; ".join(" ".join(group) for group in one.alike) or "all told apart"


def drawn(found: Comparison, one: MetricCompared) -> bool:
    """Whether a figure says something that a chart shows: it ranks, or tells runs apart."""
    return one.compared and (one.key == found.ranking.by or any(each.told_apart for each in one.contrasts))


def value_words(one: MetricCompared, each: Standing) -> str:
    """A figure with its unit."""
    if each.value is None:
        return NOTHING
    return dollars(each.value) if one.key == "money" else figure(each.value, one.unit)


def interval_words(one: MetricCompared, each: Standing) -> str:
    """Its 95 % interval."""
    if each.low is None or each.high is None:
        return NOTHING
    if one.key == "money":
        return f"{significant(each.low)} to {significant(each.high)}"
    return span(each.low, each.high, one.unit)


def method(found: Comparison) -> Iterator[str]:
    """How it was compared, and what it cannot tell."""
    yield (
        "A figure is the median over accelerators, nodes or pairs, of the nodes that would be kept; where a run is "
        "NO-GO, of all that answer. The unit of replication is the run: every interval includes the variance from run "
        "to run, by default as stated, moderated by repeated runs of the same cluster where there are some (--history)."
    )
    yield (
        f"Told apart: the interval of the ratio leaves out 1. All {found.comparisons:,} intervals hold together with "
        f"{percent(1 - found.alpha)} (Student's t, Bonferroni). With the variance as stated, a comparison is wrong "
        f"in at most {percent(found.alpha)} of cases."
    )
    by_basis: dict[str, list[str]] = {}
    for one in found.metrics:
        by_basis.setdefault(one.basis, []).append(lowered(one.title))
    told = "; ".join(f"{basis} for {joined(titles)}" for basis, titles in by_basis.items())
    yield f"Variance from run to run, as one standard deviation: {told}."
    yield (
        "Not told apart is not the same: smaller differences may be there. A single run of a cluster says nothing of "
        "another week; failures are rarer than any test is long, and goodput is projected."
    )


def joined(letters: Sequence[str]) -> str:
    """A, B and C."""
    return " and ".join(part for part in (", ".join(letters[:-1]), letters[-1]) if part)


def lowered(words: str) -> str:
    """Words that go on within a sentence."""
    return words[:1].lower() + words[1:]
