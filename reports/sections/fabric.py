"""Fabric: collectives inside nodes, between every two, rail by rail and over all; and whether their sums are right."""

from collections.abc import Iterator

import msgspec

from ...scoring.verdict import Verdict
from ..layout import Part, Section
from ..measured import Group, Measured, params_label
from ..numbers import figure, number_of
from ..pairs_seen import PairsSeen, pairs_seen
from ..plain_text import listed
from ..tables import aggregates, gaps, worst
from .fabric_nodes import each_node
from .fabric_pairs import every_pair
from .fabric_rails import own_nics, rails
from .fabric_scaling import scaling
from .fabric_sizes import size_chart, size_families
from .fabric_small import small_messages
from .fabric_whole import whole_cluster
from .judged import failing, nonzero, not_measured

_PREFIXES = ("all_reduce.", "rail.", "all_gather.", "reduce_scatter.", "all_to_all.")


def fabric(measured: Measured, verdict: Verdict) -> Section:
    """The section on collectives."""
    seen = pairs_seen(measured.run, verdict)
    parts = tuple(_parts(measured, verdict, seen))
    families = size_families(_own_groups(measured, seen))
    by_size = families[0] if families else []
    main = by_size[-1] if by_size else measured.main("all_reduce.busbw")
    flagged = failing(_without_pairs(verdict), "all_reduce.busbw")
    chart = size_chart(by_size, flagged) if len(by_size) > 1 else None
    names = [name for prefix in _PREFIXES for name in measured.metrics(prefix)]
    tables = [aggregates(measured, names, caption="By metric and size" if parts else "All figures")]
    if main and len(main.values) > 1:
        tables.append(worst(main, marked=flagged))
    largest = [family[-1] for family in families] or ([main] if main else [])
    return Section(
        anchor="fabric",
        title="Fabric",
        answer=_answer(measured, largest, seen) if main else not_measured(measured, *_PREFIXES),
        chart=None if parts else chart,
        parts=(*parts, Part(title="By message size", answer=_sizes_words(by_size), chart=chart))
        if parts and chart
        else parts,
        tables=tuple(table for table in tables if table),
        gaps=gaps(measured.missing(*_PREFIXES)),
        method=(
            "All-reduce after warm-up; a sample is one iteration. Bus bandwidth is 2(n-1)/n times the bytes over the "
            "slowest rank's time, comparable across numbers of ranks.",
            "A pair is as fast as the slowest of its two nodes and its link; suspects were measured again, alone, "
            "before anybody is blamed. Every element of every result is compared with the exact sum.",
            "Transfer is the fastest rank's time, skew the slowest minus the fastest.",
        ),
        source=("nccl-tests, PERFORMANCE.md", "https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md"),
        cannot_tell="Bus bandwidth is not a wire speed: inside a node the switches may reduce on the way. Pairs are "
        "compared with each other: what slows all of them alike shows against a reference only.",
    )


def _parts(measured: Measured, verdict: Verdict, seen: PairsSeen | None) -> Iterator[Part]:
    """What there is of the parts, in the order in which an engineer asks: which pair, which node, which rail, all."""
    found: list[Part | None] = []
    if seen:
        found += [every_pair(measured, seen), each_node(seen, verdict)]
    found += [
        rails(measured),
        own_nics(measured, verdict),
        scaling(measured, seen),
        whole_cluster(measured, seen),
        small_messages(measured),
    ]
    yield from (part for part in found if part)


def _without_pairs(verdict: Verdict) -> Verdict:
    """A node that is slow with others may be well inside."""
    own = tuple(each for each in verdict.findings if not each.check.startswith("pairs."))
    return msgspec.structs.replace(verdict, findings=own)


def _own_groups(measured: Measured, seen: PairsSeen | None) -> list[Group]:
    """The groups that no part tells of: of nodes and of the whole cluster, not of pairs and of parts of the cluster."""
    groups = [group for group in measured.groups("all_reduce.busbw") if "nodes" not in group.params]
    if seen is None:
        return groups
    return [group for group in groups if not any("~" in each.subject for each in group.values)]


def _sizes_words(by_size: list[Group]) -> str:
    return f"All-reduce of {number_of(len(by_size), 'message size')} {_on(by_size[-1])}."


def _on(group: Group) -> str:
    if len(group.values) > 1:
        return f"inside each of {_groups(group)}"
    return "over the cluster" if group.values[0].subject == "cluster" else f"on {group.values[0].subject}"


def _answer(measured: Measured, largest: list[Group], seen: PairsSeen | None) -> str:
    told = [_reach(group) for group in largest[:3]]
    if seen:
        told.append(f"{seen.rate(1.0)} between two {'good ' if len(seen.levels.of) > 1 else ''}nodes")
    slow = seen.slow_words() if seen else ""
    return " ".join(part for part in (f"All-reduce reaches {'; '.join(told)}.", slow, _right(measured)) if part)


def _reach(group: Group) -> str:
    unit, at = group.metric.unit, params_label(group.params)
    if len(group.values) == 1:
        only = group.values[0]
        where = "over the cluster" if only.subject == "cluster" else f"on {only.subject}"
        return f"{figure(only.value, unit)} of bus bandwidth {where} ({at})"
    low = group.worst
    slowest = f"the slowest, {low.subject}, {figure(low.value, unit)}"
    return f"{figure(group.median, unit)} on the median of {_groups(group)} ({at}), {slowest}"


def _groups(main: Group) -> str:
    return (
        number_of(len(main.values), "node")
        if "~" not in main.values[0].subject
        else number_of(len(main.values), "pair")
    )


def _right(measured: Measured) -> str:
    looked = nonzero(measured, "all_reduce.wrong_elements")
    if looked is None:
        return "Whether the sums are right was not measured."
    return f"Wrong sums on {listed(looked[1])}." if looked[1] else "Every element of every sum was right."
