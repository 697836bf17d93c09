"""The appendix's list of nodes: which hardware each is, from where it was seen, and in what it deviates."""

from collections import Counter, defaultdict

from .hardware import serial_of
from .layout import Cell, Column, Table, text
from .measured import Measured, node_of
from .plain_text import listed, natural, printable
from .sections.software import Tally, compared

MOST_NODES = 512


def node_list(measured: Measured) -> Table | None:
    """Every promised node with its identity; None where none was promised."""
    header = measured.run.header
    promised = sorted(header.promised, key=lambda each: natural(each.node))
    tiers = header.segments[-1].tiers if header.segments else {}
    odd = _deviations(measured)
    rows = tuple(
        (
            text(printable(each.node, 80)),
            text(serial_of(measured, each.node), code=True),
            text(_accelerators(measured, each.node, each.ranks)),
            text(tiers.get(each.node, "never joined")),
            _deviation_cell(odd.get(each.node, [])),
        )
        for each in promised[:MOST_NODES]
    )
    heads = ("node", "serial or identity", "accelerators", "access tier", "deviates from most in")
    left = f"{len(promised) - MOST_NODES:,} more are in facts.jsonl." if len(promised) > MOST_NODES else ""
    columns = tuple(Column(title=head) for head in heads)
    if not rows:
        return None
    return Table(caption="Nodes", columns=columns, rows=rows, note=left, folded=True, on_paper="whole")


def _accelerators(measured: Measured, node: str, ranks: tuple[str, ...]) -> str:
    names = Counter(
        printable(fact.value, 80)
        for rank in ranks
        if (fact := measured.facts_of(f"{node}/{rank}").get("accelerator.name"))
    )
    told = ", ".join(f"{count} \N{MULTIPLICATION SIGN} {name}" for name, count in names.most_common(4))
    return told or f"{len(ranks):,} promised"


def _deviation_cell(found: list[str]) -> Cell:
    return text(listed(found, 6), tone="warn") if found else text("\N{EM DASH}")


def _deviations(measured: Measured) -> dict[str, list[str]]:
    """By node, the facts in which it or its devices are not as most of their kind."""
    found: dict[str, list[str]] = defaultdict(list)
    for tally in compared(measured):
        for value, subjects in _minorities(tally):
            for node in sorted({node for subject in subjects if (node := node_of(subject))}, key=natural):
                found[node].append(f"{printable(tally.key, 128)} {value}")
    return found


def _minorities(tally: Tally) -> list[tuple[str, list[str]]]:
    """The values that are not the most common one; none where no value is."""
    ordered = tally.ordered
    clear = len(ordered) > 1 and len(ordered[0][1]) > len(ordered[1][1])
    return ordered[1:] if clear else []
