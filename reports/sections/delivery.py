"""Delivery and support: what was promised and came, how tickets went, and what the software stack cost in time."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from ...scoring.delivery import Delivery, Times, judged_delivery
from ...scoring.friction import Friction, friction_of
from ...scoring.provider_record import ProviderRecord
from ..layout import Cell, Column, Part, Section, Table, number, text
from ..measured import Measured
from ..numbers import NOTHING, lasting, number_of, significant
from ..plain_text import listed, natural, printable
from ..tables import MOST_ROWS

_TONES = {"kept": "pass", "broken": "fail", "open": "not_measured"}
_BLAMED = {"provider": "itself", "buyer": "the buyer", "third_party": "a third party", "nobody": "nobody"}
_NO_RECORD = (
    "Not recorded: no provider.yaml that can be read lies beside this run. To show it, fill in what "
    "`hwlottery export RUN --format provider-template` prints."
)


def delivery(measured: Measured, record: ProviderRecord | None) -> Section:
    """The section, of what the provider's record and the run's own records tell."""
    run = measured.run
    found = judged_delivery(run, record) if record is not None else None
    friction = friction_of(run)
    stack = Part(title="Software stack", answer=" ".join(_friction_words(friction)), tables=_lacks(friction))
    kept = (
        [Part(title="Promises and support", answer=_counted(found), tables=_tables(found, record))]
        if found and record
        else []
    )
    return Section(
        anchor="delivery",
        title="Delivery and support",
        answer=told(found) if found else _NO_RECORD,
        parts=(*kept, stack),
        method=(
            "Dates, tickets and replacements are what provider.yaml says: written by people, no part of the verdict.",
            "Promises are those of the policy's terms, and where it has none, of provider.yaml; what is not over yet "
            "is counted up to the last day that either speaks of.",
            "The software stack is measured: by the times and versions that the run recorded.",
        ),
        cannot_tell="Whether what was written down is complete: keep the tickets themselves.",
    )


def told(found: Delivery) -> str:
    """What was kept and what was broken, in a sentence."""
    if not found.promises:
        return "Nothing was promised in figures: neither the policy's terms nor provider.yaml says what is due."
    waits = [each.name for each in found.promises if each.kept == "open"]
    if not found.broken:
        kept = f"All {len(found.promises)} promises were kept" if not waits else "No promise is broken"
        return f"{kept}{f'; open: {listed(waits)}' if waits else ''}."
    broken = "; ".join(f"{each.name}: {each.came} (promised: {each.promised})" for each in found.broken)
    return f"{len(found.broken)} of {number_of(len(found.promises), 'promise')} broken: {broken}."


def _counted(found: Delivery) -> str:
    blamed = ", ".join(f"{_BLAMED.get(who, who)} {count}" for who, count in found.blamed.items())
    words = f"{number_of(found.tickets, 'ticket')}{f'; blamed in the answers: {blamed}' if blamed else ''}."
    if found.checkpoints_lost:
        words += f" {number_of(found.checkpoints_lost, 'checkpoint')} lost."
    if found.stack_changes:
        words += f" {number_of(found.stack_changes, 'change')} of the stack demanded."
    return words


def _tables(found: Delivery, record: ProviderRecord) -> tuple[Table, ...]:
    tables = [_promises(found), _support(found), _tickets(record), _incidents(record)]
    return tuple(table for table in tables if table.rows)


def _promises(found: Delivery) -> Table:
    rows = tuple(
        (text(each.name), text(each.promised), text(each.came), text(each.kept, tone=_TONES[each.kept]))
        for each in found.promises
    )
    return _table(f"Promises, as of {found.as_of}", ("what", "promised", "came", "kept"), rows)


def _support(found: Delivery) -> Table:
    spans = (
        ("answer to a ticket", found.answering),
        ("ticket solved (mean: MTTR)", found.solving),
        ("node replaced", found.replacing),
    )
    rows = tuple(_times_row(name, times) for name, times in spans if times.count or times.waiting)
    return _table("How long it took", ("what", "done", "median", "mean", "worst", "waiting", "longest so far"), rows, 1)


def _times_row(name: str, times: Times) -> tuple[Cell, ...]:
    return (
        text(name),
        number(times.count, f"{times.count:,}"),
        *(number(value, _hours(value)) for value in (times.median, times.mean, times.worst)),
        number(times.waiting, f"{times.waiting:,}"),
        number(times.longest_wait, _hours(times.longest_wait if times.waiting else None)),
    )


def _tickets(record: ProviderRecord) -> Table:
    shown = sorted(record.tickets, key=lambda each: each.opened)
    rows = tuple(
        (
            text(printable(each.id, 60)),
            text(printable(listed(sorted(each.concerns, key=natural), 4) or NOTHING, 200)),
            text(f"{each.opened:%Y-%m-%d %H:%M %Z}"),
            number(_since(each.opened, each.answered), _hours(_since(each.opened, each.answered))),
            number(_since(each.opened, each.solved), _hours(_since(each.opened, each.solved))),
            text(_BLAMED.get(each.blamed or "", each.blamed or NOTHING)),
            text(printable(each.what, 300)),
        )
        for each in shown[:MOST_ROWS]
    )
    left_out = len(shown) - len(rows)
    heads = ("ticket", "nodes", "opened", "answered after", "solved after", "blamed", "what")
    numeric = ("answered after", "solved after")
    return Table(
        caption="Tickets",
        columns=tuple(Column(title=head, numeric=head in numeric) for head in heads),
        rows=rows,
        note=f"{left_out:,} more in provider.yaml." if left_out else "",
        folded=True,
        on_paper="whole",
    )


def _incidents(record: ProviderRecord) -> Table:
    kinds = (("checkpoint lost", record.checkpoints_lost), ("stack change demanded", record.stack_changes))
    every = sorted(((each.date, kind, each.what) for kind, some in kinds for each in some), key=lambda one: one[:2])
    rows = tuple((text(str(day)), text(kind), text(printable(what, 300))) for day, kind, what in every[:MOST_ROWS])
    return _table(
        "Checkpoints lost, and changes of the stack that the provider demanded", ("day", "kind", "what"), rows
    )


def _table(caption: str, heads: tuple[str, ...], rows: tuple[tuple[Cell, ...], ...], numeric_from: int = 99) -> Table:
    columns = tuple(Column(title=head, numeric=place >= numeric_from) for place, head in enumerate(heads))
    return Table(caption=caption, columns=columns, rows=rows, on_paper="whole")


def _since(start: datetime, end: datetime | None) -> float | None:
    return None if end is None else (end - start) / timedelta(hours=1)


def _hours(value: float | None) -> str:
    return NOTHING if value is None else f"{significant(value)} h"


def _friction_words(found: Friction) -> Iterator[str]:
    if found.first_all_reduce_s is None:
        yield "No all-reduce came to its end."
    else:
        took = lasting(timedelta(seconds=found.first_all_reduce_s))
        yield f"The first all-reduce was done {took} after the first command."
    if found.starts > 1:
        yield f"The run was begun {found.starts} times."
    if found.never_joined:
        yield f"{number_of(len(found.never_joined), 'node')} never joined: {listed(found.never_joined)}."
    if not found.missing_tools and not found.differing:
        yield "No tool was missing, and no version differed between nodes."


def _lacks(found: Friction) -> tuple[Table, ...]:
    missing = tuple(
        (text(printable(tool, 300)), number(len(nodes), f"{len(nodes):,}"), text(printable(listed(nodes, 6), 300)))
        for tool, nodes in found.missing_tools[:MOST_ROWS]
    )
    other = tuple(
        (text(printable(each.name, 80)), text(printable(version, 100)), text(printable(listed(nodes, 6), 300)))
        for each in found.differing[:MOST_ROWS]
        for version, nodes in each.versions
    )
    tables = (
        _table("Tools that were missing", ("what was missing", "nodes", "which"), missing),
        _table("Versions that differ between nodes", ("software", "version", "nodes"), other),
    )
    return tuple(table for table in tables if table.rows)
