"""A ticket to the provider: what was found on which hardware, when, and the evidence of it.

It is written for somebody else: no price, no money, no other provider and no command line stand in it. Only fields
that are named here reach it.
"""

import re
from collections.abc import Iterator, Sequence

from msgspec import Struct

from ..evidence import HwlotteryError, Run
from ..scoring.verdict import Finding, Verdict
from .finding_evidence import details, excerpts, group_of, nodes_of, since_when
from .findings import LAYERS
from .gathering import gathered
from .hardware import devices_of, hardware_behind, hardware_of
from .log_excerpt import Excerpt
from .markdown import Code, code, rendered
from .measured import Measured
from .numbers import figure, number_of, utc
from .plain_text import listed, natural, printable, sentence
from .rental import shape

MOST_FINDINGS = 100
# A log line that speaks of money is the buyer's.
_MONEY = re.compile(r"price|usd|eur\b|\$\s*\d", re.IGNORECASE)
_LEFT_OUT = ("Required", "Taking out", "Checks", "Subjects")


class NoTicket(HwlotteryError):
    """There is nothing to write of, or the node is none of the run's."""


class Item(Struct, frozen=True, kw_only=True):
    """One finding as the provider reads it."""

    finding: Finding
    title: str
    statement: str
    rows: tuple[tuple[str, str], ...]
    logs: tuple[tuple[str, Code], ...]
    action: str


class Machine(Struct, frozen=True, kw_only=True):
    """A node or device with the numbers by which it is found."""

    name: str
    numbers: str


class Ticket(Struct, frozen=True, kw_only=True):
    """The whole ticket. `about` are words and what they stand for; `caveats` what weakens it; `unseen` what the
    tenant may not read; `left_out` how many findings more there are."""

    title: str
    about: tuple[tuple[str, str], ...]
    caveats: tuple[str, ...]
    items: tuple[Item, ...]
    machines: tuple[Machine, ...]
    unseen: tuple[str, ...]
    left_out: int


def ticket(run: Run, verdict: Verdict, nodes: Sequence[str] = ()) -> Ticket:
    """A ticket of what failed or gave a warning: of all the run, or of these nodes alone.

    Raises NoTicket where nothing did, and for a node that was not promised.
    """
    _refuse_unknown(run, nodes)
    found = [
        each
        for group in gathered(verdict)
        for each in group.findings
        if each.result in ("fail", "warn") and (not nodes or set(nodes) & set(nodes_of(each.subject)))
    ]
    if not found:
        raise NoTicket(f"no ticket: nothing failed{f' on {listed(nodes)}' if nodes else ''}")
    measured, shown = Measured(run), found[:MOST_FINDINGS]
    names = sorted({node for each in shown for node in nodes_of(each.subject)}, key=natural)
    return Ticket(
        title=f"{number_of(len(found), 'finding')} on {listed(names) or 'the cluster'}",
        about=tuple(_about(run, verdict)),
        caveats=tuple(_caveats(run, verdict)),
        items=tuple(_item(measured, each) for each in shown),
        machines=tuple(_machines(measured, names)),
        unseen=tuple(_unseen(measured, nodes)),
        left_out=len(found) - len(shown),
    )


def as_markdown(found: Ticket) -> str:
    """The ticket as Markdown."""
    return rendered("ticket.md.j2", ticket=found)


def _refuse_unknown(run: Run, nodes: Sequence[str]) -> None:
    known = sorted((node.node for node in run.header.promised), key=natural)
    for node in nodes:
        if node not in known:
            raise NoTicket(f"no node {printable(node, 60)!r} in this run (choices: {listed(known, 20)})")


def _about(run: Run, verdict: Verdict) -> Iterator[tuple[str, str]]:
    header = run.header
    yield "Cluster", " · ".join(part for part in (header.provider, header.cluster, shape(run)) if part)
    yield "Measured", f"{utc(run.started)} to {utc(run.ended)}"
    yield "Run", f"{header.run_id}, hwlottery {header.segments[-1].hwlottery if header.segments else 'unknown'}"
    yield "Judged by policy", f"{verdict.policy.name}, SHA-256 {verdict.policy.sha256}"


def _caveats(run: Run, verdict: Verdict) -> Iterator[str]:
    yield from verdict.caveats
    if run.problems:
        yield f"The record of this run is not whole ({number_of(len(run.problems), 'defect')}): hwlottery verify."


def _item(measured: Measured, each: Finding) -> Item:
    values = group_of(measured, each)
    since = since_when(measured, [each], values)
    rows = [
        *hardware_behind(measured, each.subject),
        ("Since", utc(since)),
        ("Observed", figure(each.observed, each.unit)),
        ("Expected", each.expected),
    ]
    if each.layer:
        rows.append(("Judged by", f"{LAYERS[each.layer]}; confidence {each.confidence}"))
    if values and len(values.values) > 1:
        rows.append(("Median of all", f"{figure(values.median, values.metric.unit)} over {len(values.values):,}"))
    rows += [row for row in details(measured, [each], [each.subject], values) if row[0] not in _LEFT_OUT]
    return Item(
        finding=each,
        title=f"{each.subject}: {each.check} ({'fails' if each.result == 'fail' else 'warning'})",
        statement=each.statement,
        rows=tuple((name, value) for name, value in rows if value),
        logs=tuple((log.name, code(log.text)) for log in logs_of(measured.run, each)),
        action=sentence(each.action),
    )


def logs_of(run: Run, each: Finding) -> list[Excerpt]:
    """The excerpts of a finding's logs, without lines that speak of money."""
    return [
        Excerpt(name=log.name, cut=log.cut, text="\n".join(map(_without_money, log.text.split("\n"))))
        for log in excerpts(run, each)
    ]


def _without_money(line: str) -> str:
    return "(a line left out)" if _MONEY.search(line) else line


def _machines(measured: Measured, nodes: Sequence[str]) -> Iterator[Machine]:
    for node in nodes:
        for name in (node, *devices_of(measured, node)):
            yield Machine(name=name, numbers=hardware_of(measured, name))


def _unseen(measured: Measured, nodes: Sequence[str]) -> list[str]:
    """What is closed to the tenant, and would have told more."""
    closed: dict[str, set[str]] = {}
    for record in measured.missing(""):
        mine = not nodes or set(nodes) & set(nodes_of(record.subject))
        if record.reason == "closed_to_tenant" and mine:
            closed.setdefault(record.metric, set()).add(record.subject)
    return [f"{metric} on {listed(sorted(who, key=natural), 4)}" for metric, who in sorted(closed.items())]
