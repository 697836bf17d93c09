"""Topology of the nodes: PCIe and NVLink under load."""

from collections import Counter

from ...scoring.verdict import Verdict
from ..bars import counts
from ..layout import Chart, Section
from ..measured import Measured
from ..numbers import figure, number_of
from ..plain_text import listed, natural, printable
from ..tables import aggregates, gaps, worst
from .judged import failing, not_measured

_PARTS = ("topology.pcie_width", "topology.pcie_gts", "topology.nvlinks_active")


def topology(measured: Measured, verdict: Verdict) -> Section:
    """The section on the links inside the nodes."""
    states = link_states(measured)
    flagged = failing(verdict, "topology.")
    main = measured.main(_PARTS[0])
    tables = [aggregates(measured, measured.metrics("topology."))]
    if main and len(set(main.numbers)) > 1:
        tables.append(worst(main, marked=flagged))
    return Section(
        anchor="topology",
        title="Topology",
        answer=_answer(states) if states else _nothing(measured),
        chart=_chart(states) if states else None,
        tables=tuple(table for table in tables if table),
        gaps=gaps(measured.missing("topology.")),
        method=(
            "PCIe width and rate are read while the link works: idle links legally step down.",
            "NVLinks are counted as the driver reports them.",
            "Nodes are compared with each other: no list of what should be there is needed.",
        ),
        cannot_tell="The cabling between nodes: a swapped cable shows only in a measurement between nodes.",
    )


def link_states(measured: Measured) -> dict[str, str]:
    """Each device with the state of its links in words: 16 lanes · 32 GT/s · 18 links."""
    words: dict[str, list[str]] = {}
    for name in _PARTS:
        group = measured.main(name)
        for each in group.values if group else ():
            words.setdefault(each.subject, []).append(figure(each.value, group.metric.unit if group else ""))
    return {subject: " · ".join(parts) for subject, parts in words.items()}


def _nothing(measured: Measured) -> str:
    """Why there is no link to show: what the probe saw, where it ran."""
    seen = [
        (name, fact) for name in measured.subjects_with_facts if (fact := measured.facts_of(name).get("topology.seen"))
    ]
    if measured.missing("topology.") or not seen:
        return not_measured(measured, "topology.")
    told = "; ".join(f"{name}: {printable(fact.value, 200)}" for name, fact in seen[:3])
    return f"Nothing to measure here. {told}."


def _answer(states: dict[str, str]) -> str:
    tally = Counter(states.values())
    common, count = tally.most_common(1)[0]
    if len(tally) == 1:
        return f"All {number_of(count, 'device')} run with {common}."
    odd = sorted((subject for subject, state in states.items() if state != common), key=natural)
    differ = "differs" if len(odd) == 1 else "differ"
    return f"{count:,} of {len(states):,} devices run with {common}; {listed(odd)} {differ}."


def _chart(states: dict[str, str]) -> Chart:
    tally = Counter(states.values()).most_common(12)
    common = tally[0][0]
    odd = sorted((subject for subject, state in states.items() if state != common), key=natural)
    title = (
        f"{listed(odd, 3)} differs from the majority"
        if len(odd) == 1
        else f"{len(odd)} devices differ from the majority"
    )
    title = title if odd else f"All {number_of(len(states), 'device')} have the same links"
    rows = [(state, count, state != common) for state, count in tally]
    return Chart(title=title, svg=counts(rows, axis="devices", label=f"{title}; table below."))
