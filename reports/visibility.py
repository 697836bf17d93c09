"""What to take out, and what could not be seen: closed to the tenant, unreadable, and the access tier of each node."""

import shlex
from collections import defaultdict

from msgspec import Struct

from ..evidence import TIERS, Run, parse_subject
from ..scoring.out_of_use import nodes_out, out_in_words
from ..scoring.verdict import Verdict
from .layout import Column, Table, number, text
from .measured import Measured
from .plain_text import listed, natural, printable
from .tables import MOST_ROWS
from .taken_out import out_nodes, parted

_TIER_WORDS = {
    "bare-root": "bare metal, root: kernel log, PCI tree, mounts",
    "bare": "bare metal without root",
    "vm-root": "virtual machine, root inside it",
    "vm": "virtual machine without root",
    "container-root": "container, root inside it",
    "container": "container without root",
}
_UNREADABLE = "unreadable."


class Exclusion(Struct, frozen=True, kw_only=True):
    """What to take out: the nodes, with an `option` for the scheduler, and the devices and links that take nodes along;
    `told` is all of it in words."""

    nodes: tuple[str, ...]
    parts: tuple[str, ...]
    option: str
    told: str


def exclusion(verdict: Verdict) -> Exclusion:
    """The nodes that the verdict takes out, and what of its exclusions is no node."""
    nodes = sorted(nodes_out(verdict.exclude), key=natural)
    parts = [printable(each, 600) for each in sorted(set(verdict.exclude), key=natural) if _kind(each) != "node"]
    option = shlex.quote(f"--exclude={','.join(nodes)}") if nodes else ""
    told = printable(out_in_words(verdict.exclude, 12), 200)
    return Exclusion(nodes=tuple(nodes), parts=tuple(parts), option=option, told=told)


def visibility(measured: Measured, verdict: Verdict) -> list[Table]:
    """The tables of what could not be seen."""
    tables = [_closed(measured), _unreadable(measured), _tiers(measured.run)]
    return [table for table in tables if table]


def _closed(measured: Measured) -> Table | None:
    closed: dict[tuple[str, str], list[str]] = defaultdict(list)
    for record in measured.missing(""):
        if record.reason == "closed_to_tenant":
            closed[record.metric, record.detail].append(record.subject)
    rows = tuple(
        (text(metric, code=True), number(len(who), f"{len(who):,}"), text(_who(who)), text(printable(detail, 300)))
        for (metric, detail), who in closed.items()
    )
    heads = ("metric", "subjects", "which", "why")
    columns = tuple(Column(title=head, numeric=head == "subjects") for head in heads)
    return (
        Table(caption="Closed to the tenant", columns=columns, rows=rows[:MOST_ROWS], on_paper="whole")
        if rows
        else None
    )


def _unreadable(measured: Measured) -> Table | None:
    """Facts that inventory looked for in vain: it writes them as unreadable.KEY with the reason."""
    found: dict[tuple[str, str], list[str]] = defaultdict(list)
    for subject in measured.subjects_with_facts:
        for key, fact in measured.facts_of(subject).items():
            if key.startswith(_UNREADABLE):
                found[key.removeprefix(_UNREADABLE), printable(fact.value, 300)].append(subject)
    rows = tuple(
        (text(printable(key, 128), code=True), number(len(who), f"{len(who):,}"), text(_who(who)), text(why))
        for (key, why), who in sorted(found.items())
    )
    heads = ("fact", "subjects", "which", "why")
    columns = tuple(Column(title=head, numeric=head == "subjects") for head in heads)
    more = f"{len(rows) - MOST_ROWS} more are in facts.jsonl." if len(rows) > MOST_ROWS else ""
    if not rows:
        return None
    return Table(caption="Facts that could not be read", columns=columns, rows=rows[:MOST_ROWS], note=more, folded=True)


def _tiers(run: Run) -> Table | None:
    tiers = run.header.segments[-1].tiers if run.header.segments else {}
    nodes = defaultdict(list)
    for node, tier in tiers.items():
        nodes[tier].append(node)
    unknown = [each.node for each in run.header.promised if each.node not in tiers]
    rows = [
        (
            text(tier),
            text(_TIER_WORDS[tier]),
            number(len(nodes[tier]), f"{len(nodes[tier]):,}"),
            text(_who(nodes[tier])),
        )
        for tier in TIERS
        if nodes[tier]
    ]
    if unknown:
        rows.append(
            (
                text("unknown"),
                text("the node never joined"),
                number(len(unknown), str(len(unknown))),
                text(_who(unknown)),
            )
        )
    heads = ("access tier", "what that is", "nodes", "which")
    columns = tuple(Column(title=head, numeric=head == "nodes") for head in heads)
    declared = run.header.declared_tier
    note = f"Declared with --tier {declared}." if declared else "Found by what may be read, not by user id."
    return (
        Table(caption="From where the nodes were seen", columns=columns, rows=tuple(rows), note=note) if rows else None
    )


def required_words(verdict: Verdict) -> str:
    """How much of what the policy requires was measured, in a sentence; nodes that are taken out are counted apart."""
    cover = verdict.coverage
    remaining, out = parted((each for each in verdict.findings if each.required), verdict)
    lost = [each for each in out if each.result == "not_measured"]
    if lost:
        seen = sum(each.result != "not_measured" for each in remaining)
        told = f"{seen:,} of {len(remaining):,} required values on what remains were measured"
        told += f"; {len(lost):,} more are missing on excluded {out_nodes(lost, verdict)}"
    else:
        told = f"{cover.measured:,} of {cover.required:,} required values were measured"
    return f"{told}; {cover.closed:,} are closed to the tenant." if cover.closed else f"{told}."


def _who(subjects: list[str]) -> str:
    return printable(listed(sorted(set(subjects), key=natural), 6), 400)


def _kind(subject: str) -> str:
    try:
        return parse_subject(subject).kind
    except ValueError:
        return "other"
