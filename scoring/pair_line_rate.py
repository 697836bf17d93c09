"""Pairs that reach more than their NICs can carry: such a figure is none of the wire, and no fault either.

With two nodes a tree moves fewer bytes over the network than the formula of bus bandwidth assumes, up to half of them
(NVIDIA/nccl-tests issue 169), and switches that reduce do as well. The next figure, of three nodes, then looks like a
fall, and the third node like its cause.
"""

from collections.abc import Iterator

import msgspec

from ..fabric import level_of
from .derived import Figures
from .findings import new_finding
from .line_rate import rail_line_rate
from .pairs import BUSBW, nvlink_domains, pair_subjects
from .policy_model import Check
from .scope import Target, nodes_of
from .values import Value
from .verdict import Finding
from .words import counted, figure

ABOVE = 1.05  # of the line rate: the rounding of rates and clocks


def judge_line_rate(check: Check, scope: list[Target], figures: Figures) -> Iterator[Finding]:
    """A finding for each pair above its line rate; else one on the cluster."""
    domains = nvlink_domains(figures)
    over_nics = (pair for pair in pair_subjects(figures, BUSBW).items() if level_of(pair[0], domains) != "domain")
    lines = {subject: _line(figures, subject) for _, subject in over_nics}
    for target in scope:
        known = {subject: line for subject, line in lines.items() if line}
        above = [found for subject, line in known.items() if (found := _above(check, subject, line, figures))]
        if above:
            yield from above
        elif known and len(known) == len(lines):
            finding = new_finding(check, target, "pass", figures.facts)
            detail = f"none of {counted(len(known), 'pair')} is above the line rate of its NICs"
            yield msgspec.structs.replace(finding, metric=BUSBW, unit="GB/s", layer="reference", detail=detail)
        else:
            finding = new_finding(check, target, "not_measured", figures.facts)
            why = (
                "the line rate of some nodes is not known: no RDMA port was seen up"
                if lines
                else "no pair was measured"
            )
            yield msgspec.structs.replace(finding, metric=BUSBW, unit="GB/s", reason="no_reference", detail=why)


def _line(figures: Figures, subject: str) -> float | None:
    """GB/s that all NICs of the slower node of a pair carry; None where either is not known."""
    rates = []
    for name in nodes_of(subject):
        node = figures.node(name)
        rate = rail_line_rate(figures.facts, node) if node else None
        rates.append(rate * len(node.ranks) if node and rate else None)
    known = [rate for rate in rates if rate]
    return min(known) if known and len(known) == len(rates) else None


def _above(check: Check, subject: str, line: float, figures: Figures) -> Finding | None:
    """The pair's fastest value, where that is above the line. By ring it is a warning, for then the facts miss a NIC;
    by another algorithm it says nothing of the wire, and nothing is judged by it until the ring is measured."""
    values = [value for value in figures.of(BUSBW, subject) if value.value is not None]
    fastest = max(values, key=lambda value: value.value or 0.0, default=None)
    if fastest is None or not (fastest.value or 0.0) > ABOVE * line:
        return None
    target = Target(subject=subject, nodes=nodes_of(subject))
    taken = _algorithm(fastest, subject, figures)
    by_ring = taken.lower() == "ring"
    finding = new_finding(check, target, "warn" if by_ring else "not_measured", figures.facts)
    return msgspec.structs.replace(
        finding,
        required=finding.required or not by_ring,
        reason="" if by_ring else "inflated",
        metric=BUSBW,
        unit="GB/s",
        layer="reference",
        params=fastest.params,
        observed=fastest.value,
        expected=f"at most the {figure(line, 'GB/s')} that the NICs of a node carry",
        threshold=line,
        confidence="high",
        detail=f"inflated: {_how(taken)}; no figure of the wire, and no baseline for more nodes",
        evidence=fastest.trials[:20],
    )


def _algorithm(value: Value, subject: str, figures: Figures) -> str:
    """Which algorithm NCCL took for a pair, as far as that was recorded."""
    return str(figures.facts.get(subject, "pairs.algorithm") or value.params.get("algorithm") or "")


def _how(taken: str) -> str:
    return f"NCCL took {taken}" if taken else "the algorithm that NCCL took was not recorded"
