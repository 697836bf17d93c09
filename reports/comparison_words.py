"""A comparison in words and tables: what the page and the terminal both show."""

from collections.abc import Iterator, Sequence

from ..scoring.comparison_model import Comparison, Entrant, MetricCompared, Place, Standing
from ..scoring.comparison_ranking import against
from .first_screen import WORDS
from .layout import Cell, Column, Table, number, text
from .numbers import NOTHING, dollars, figure, number_of, percent, significant, span, utc
from .plain_text import listed, printable
from .sections.delivery import told

MOST_ROWS = 60
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
    told = [f"{first.letter} is ahead of {_and(sorted(beaten - {first.letter}))}"] if beaten else []
    if first.tied:
        told.append(f"{_and(sorted([first.letter, *first.tied]))} cannot be told apart")
    unfit = [run.letter for run in found.runs if run.verdict == "NO_GO"]
    if unfit:
        told.append(f"{_and(unfit)} {'is' if len(unfit) == 1 else 'are'} NO-GO")
    return f"By {lowered(by.title)}: {'; '.join(told)}."


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
    return [*told, *([f"{_and(sorted([best, *alike]))} cannot be told apart"] if alike else [])]


def alike_in(found: Comparison) -> str:
    """The figures in which nothing is told apart: they need no chart."""
    titles = [lowered(one.title) for one in found.metrics if one.compared and not drawn(found, one)]
    return f"In {_and(titles)} no two runs can be told apart." if titles else ""


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
        return f"{significant(each.low)}\N{EN DASH}{significant(each.high)}"
    return span(each.low, each.high, one.unit)


def runs_table(found: Comparison) -> Table:
    """Who takes part."""
    columns = ("run", "size", "began", "USD/hour", "verdict", "take out", "delivery")
    rows = tuple(
        (
            text(name_of(run)), text(shape_of(run)), text(utc(run.started)),
            number(run.price_per_gpu_hour, price_words(run)),
            text(verdict_words(run), tone=_TONES.get(run.verdict, "")),
            text(listed(map(printable, run.excluded), 4) or NOTHING),
            text(told(run.delivery) if run.delivery else NOTHING),
        )
        for run in found.runs
    )  # fmt: skip
    return _table("The runs; USD an accelerator-hour", columns, rows, numeric=(3,))


def price_words(run: Entrant) -> str:
    """Its price, or that it has none."""
    return "not given" if run.price_per_gpu_hour is None else f"{run.price_per_gpu_hour:.2f}"


def verdict_words(run: Entrant) -> str:
    """Its verdict, and whether that may be signed."""
    return WORDS[run.verdict] + ("" if run.signable else ", not signable")


_TONES = {"NO_GO": "fail", "CONDITIONAL": "warn", "INCONCLUSIVE": "warn"}


def ranking_table(found: Comparison) -> Table | None:
    """The order, with the figure that ranks and the reasons."""
    by = next((one for one in found.metrics if one.key == found.ranking.by), None)
    if by is None:
        return None
    standings = {each.letter: each for each in by.standings}
    names = {run.letter: name_of(run) for run in found.runs}
    rows = [_place_row(place, by, standings[place.letter], names) for place in found.ranking.places]
    rows += [
        (text(NOTHING), text(names[letter]), text(NOTHING), text(NOTHING), text(NOTHING), text(f"not ranked: {why}"))
        for letter, why in found.ranking.unranked
    ]
    columns = ("place", "run", "figure", "95 %", "tied with", "why")
    caption = f"In order of {lowered(by.title)}, {by.unit}; tied are those that cannot be told apart"
    return _table(caption, columns, tuple(rows), numeric=(2, 3))


def _place_row(place: Place, by: MetricCompared, each: Standing, names: dict[str, str]) -> tuple[Cell, ...]:
    return (
        text(str(place.place)), text(names[place.letter]), number(each.value, value_words(by, each)),
        number(each.low, interval_words(by, each)), text(", ".join(place.tied) or NOTHING),
        text(". ".join(place.reasons) or NOTHING),
    )  # fmt: skip


def figures_table(found: Comparison) -> Table:
    """Every figure of every run."""
    letters = [run.letter for run in found.runs]
    rows = tuple(
        (
            text(f"{one.title}, {one.unit}"), text(printable(one.measured_with, 120) or NOTHING),
            *(number(each.value, _with_interval(one, each)) for each in one.standings),
            text(alike_words(one)),
        )
        for one in found.metrics
    )  # fmt: skip
    columns = ("figure", "measured with", *letters, "tied")
    return _table(
        "Figures with their 95 % intervals, variance between runs included", columns, rows,
        numeric=tuple(range(2, 2 + len(letters))),
    )  # fmt: skip


def _with_interval(one: MetricCompared, each: Standing) -> str:
    if each.value is None:
        return each.why_not or "not measured"
    value, low, high = (significant(number) for number in (each.value, each.low or 0.0, each.high or 0.0))
    return f"{value} [{low}\N{EN DASH}{high}]"


def alike_words(one: MetricCompared) -> str:
    """Who cannot be told apart from whom."""
    if not one.contrasts:
        return "nothing compared"
    if one.alike == one.comparable and len(one.alike) == 1:
        return "all"
    return "; ".join(" ".join(group) for group in one.alike) or "all told apart"


def contrasts_table(found: Comparison) -> Table:
    """Every difference with its interval, those that are told apart first."""
    rows = [
        (not each.told_apart, -abs(each.ratio - 1), one, each) for one in found.metrics for each in one.contrasts
    ]  # fmt: skip
    rows.sort(key=lambda row: row[:2])
    shown = tuple(
        (
            text(one.title), text(f"{each.first} / {each.second}"), number(each.ratio, percent(each.ratio)),
            number(each.low, f"{percent(each.low)} \N{EN DASH} {percent(each.high)}"),
            text(f"{each.better} is better" if each.better else "cannot be told apart"),
            text(", ".join(each.may_explain) or NOTHING),
        )
        for _, _, one, each in rows[:MOST_ROWS]
    )  # fmt: skip
    sure = f"intervals that hold together with {percent(1 - found.alpha)}"
    table = _table(
        f"Differences, {sure}", ("figure", "runs", "ratio", "interval", "", "may be due to"), shown, numeric=(2, 3)
    )
    note = f"{len(rows) - MOST_ROWS:,} more: `hwlottery compare --json`." if len(rows) > MOST_ROWS else ""
    return Table(caption=table.caption, columns=table.columns, rows=table.rows, note=note, folded=True)


def differences_table(found: Comparison) -> Table | None:
    """What is not alike, and what it forbids."""
    if not found.differences:
        return None
    letters = [run.letter for run in found.runs]
    rows = tuple(
        (
            text(each.aspect), text(each.effect, tone="fail" if each.effect == "forbids" else ""),
            *(text(printable(value, 120)) for value in each.values),
            text(lowered(listed(each.metrics, 4)) if each.metrics else NOTHING), text(each.why),
        )
        for each in found.differences
    )  # fmt: skip
    columns = ("what differs", "effect", *letters, "touches", "why")
    return _table("What is not alike", columns, rows)


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
    told = "; ".join(f"{basis} for {_and(titles)}" for basis, titles in by_basis.items())
    yield f"Variance from run to run, as one standard deviation: {told}."
    yield (
        "Not told apart is not the same: smaller differences may be there. A single run of a cluster says nothing of "
        "another week; failures are rarer than any test is long, and goodput is projected."
    )


def _table(
    caption: str, columns: Sequence[str], rows: tuple[tuple[Cell, ...], ...], numeric: Sequence[int] = ()
) -> Table:  # fmt: skip
    heads = tuple(Column(title=head, numeric=place in numeric) for place, head in enumerate(columns))
    return Table(caption=caption, columns=heads, rows=rows)


def _and(letters: Sequence[str]) -> str:
    return " and ".join(part for part in (", ".join(letters[:-1]), letters[-1]) if part)


def lowered(words: str) -> str:
    """Words that go on within a sentence."""
    return words[:1].lower() + words[1:]
