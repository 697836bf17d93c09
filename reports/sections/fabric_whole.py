"""Fabric, every collective: all-reduce, all-gather, reduce-scatter and all-to-all over the cluster or a domain."""

import statistics

from ..layout import Cell, Column, Part, Table, number, text
from ..measured import Group, Measured, Value, params_label
from ..numbers import figure, number_of, percent
from ..pairs_seen import UNIT, PairsSeen
from ..plain_text import natural, printable
from ..tables import MOST_ROWS

COLLECTIVES = {
    "all_reduce": "all-reduce",
    "all_gather": "all-gather",
    "reduce_scatter": "reduce-scatter",
    "all_to_all": "all-to-all",
}


def whole_cluster(measured: Measured, seen: PairsSeen | None) -> Part | None:
    """The part on collectives over many nodes; None where none was measured but all-reduce."""
    found = [
        (word, group, each)
        for name, word in COLLECTIVES.items()
        for group in measured.groups(f"{name}.busbw")
        for each in group.values
        if each.subject == "cluster" or each.subject.startswith("domain:")
    ]
    if not any(word != "all-reduce" for word, _, _ in found):
        return None
    found.sort(key=lambda one: (natural(one[2].subject), list(COLLECTIVES.values()).index(one[0]), _size(one[1])))
    heads = ("collective", "over", "params", "bus bandwidth", "least", "most", "wrong elements")
    left = f"{len(found) - MOST_ROWS:,} more: `hwlottery export RUN --format csv`." if len(found) > MOST_ROWS else ""
    table = Table(
        caption="Collectives over many nodes",
        columns=tuple(Column(title=head, numeric=place > 2) for place, head in enumerate(heads)),
        rows=tuple(_row(measured, *one) for one in found[:MOST_ROWS]),
        note=left,
    )
    return Part(title="Every collective", answer=_answer(found, seen), tables=(table,))


def kept_together(seen: PairsSeen | None) -> str:
    """What a good pair keeps of its lone bandwidth while others talk, or that nobody measured it."""
    both = [pair for pair in seen.controls if pair in seen.beside] if seen else []
    if not both or seen is None:
        few = seen is None or len(seen.nodes) < 4
        return "" if few else "How pairs beside others compare with pairs alone was not measured."
    kept = statistics.median(statistics.median(seen.beside[one]) / statistics.median(seen.alone[one]) for one in both)
    measured = f"({number_of(len(both), 'good pair')} measured both ways)"
    if kept >= 0.95:
        return f"A pair is as fast beside others as alone: {percent(kept)} {measured}."
    return (
        f"A pair keeps only {percent(kept)} of its lone bandwidth while others talk {measured}: the fabric is "
        "oversubscribed, or its routes collide. Ask for the number of uplinks a leaf has."
    )


def _answer(found: list[tuple[str, Group, Value]], seen: PairsSeen | None) -> str:
    best: dict[str, float] = {}
    for word, _, each in found:
        if each.subject == found[0][2].subject:
            best[word] = max(each.value, best.get(word, 0.0))
    where = "Over the cluster" if found[0][2].subject == "cluster" else f"Within {printable(found[0][2].subject, 80)}"
    told = ", ".join(f"{word} {figure(value, UNIT)}" for word, value in best.items())
    return f"{where} bus bandwidth reaches: {told}. {kept_together(seen)}".strip()


def _row(measured: Measured, word: str, group: Group, each: Value) -> tuple[Cell, ...]:
    name = next(name for name, one in COLLECTIVES.items() if one == word)
    wrong = _wrong(measured, f"{name}.wrong_elements", group, each.subject)
    return (
        text(word),
        text(printable(each.subject, 80)),
        text(params_label(group.params)),
        number(each.value, figure(each.value, UNIT)),
        number(each.low, figure(each.low, UNIT)),
        number(each.high, figure(each.high, UNIT)),
        number(wrong, figure(wrong), tone="fail" if wrong else ""),
    )


def _wrong(measured: Measured, name: str, like: Group, subject: str) -> float | None:
    values = [
        each.value
        for group in measured.groups(name)
        if group.params == like.params
        for each in group.values
        if each.subject == subject
    ]
    return max(values, default=None)


def _size(group: Group) -> float:
    count = group.params.get("bytes", 0)
    return float(count) if isinstance(count, int | float) else 0.0
