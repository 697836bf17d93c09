"""Software and hardware: what most nodes have, who deviates, and which node is which."""

from collections import Counter, defaultdict
from collections.abc import Iterable

from ...evidence import Fact, parse_subject
from ...scoring.verdict import Verdict
from ..layout import Cell, Column, Section, Table, number, text
from ..measured import Measured
from ..numbers import figure
from ..plain_text import listed, natural, printable
from ..tables import MOST_ROWS, gaps
from .judged import failing

_IDENTITY = ("identity", "serial", "uuid", "guid", "hostname", "machine_id", "mac", "bus_id", "address", "boot_id")
_MOST_NODES = 512
# What changes from minute to minute is in facts.jsonl; comparing it between nodes says nothing.
_PASSING = frozenset({"available", "free", "free_inodes", "uptime", "memory_used", "free_bytes"})
_NOT_COMPARED = ("unreadable.", "foreign.", "kernel_log.", "burn_in.", "clock.offset")
_HEADLINE = ("cpu.model", "os.name", "os.kernel", "driver.version", "driver.cuda", "torch.version")


class Tally:
    """One fact over all subjects of a kind: its values by how many have them."""

    def __init__(self, kind: str, key: str) -> None:
        self.kind, self.key = kind, key
        self.by_value: dict[str, list[str]] = defaultdict(list)

    @property
    def ordered(self) -> list[tuple[str, list[str]]]:
        """Values, the most common first."""
        return sorted(self.by_value.items(), key=lambda item: -len(item[1]))

    @property
    def count(self) -> int:
        """How many subjects say it."""
        return sum(map(len, self.by_value.values()))

    @property
    def names_each(self) -> bool:
        """Whether it is there to tell subjects apart: a serial number, an address."""
        many = self.count > 2 and len(self.by_value) == self.count
        return many or any(part in self.key.lower() for part in _IDENTITY)


def software(measured: Measured, verdict: Verdict) -> Section:
    """The section on versions, settings and identity."""
    tallies = list(_tallies(measured))
    uniform = [tally for tally in tallies if not tally.names_each]
    odd = [tally for tally in uniform if len(tally.by_value) > 1]
    return Section(
        anchor="software",
        title="Software and hardware",
        answer=_answer(measured, uniform, odd) if tallies else "Not measured: the inventory brought no facts.",
        tables=tuple(_tables(measured, uniform, odd, failing(verdict, "software."))),
        gaps=gaps(measured.missing("inventory.", "software.")),
        method=(
            "Facts are read on every node and compared: what most nodes say is the majority, the others deviate.",
            "A node is its hardware, not its name: serial numbers and UUIDs identify it.",
        ),
        cannot_tell="Settings that the tenant cannot read, such as firmware options and switch configuration.",
    )


def compared(measured: Measured) -> list[Tally]:
    """The facts that are compared between subjects of a kind: none that is there to tell them apart."""
    return [tally for tally in _tallies(measured) if not tally.names_each]


def _tallies(measured: Measured) -> Iterable[Tally]:
    found: dict[tuple[str, str], Tally] = {}
    for subject in measured.subjects_with_facts:
        kind = _kind(subject)
        for key, fact in measured.facts_of(subject).items():
            if key.startswith(_NOT_COMPARED) or key.rsplit(".", 1)[-1] in _PASSING:
                continue
            tally = found.setdefault((kind, key), Tally(kind, key))
            tally.by_value[shown(fact)].append(subject)
    return sorted(found.values(), key=lambda tally: (tally.kind != "node", tally.kind, tally.key))


def _kind(subject: str) -> str:
    try:
        return parse_subject(subject).kind
    except ValueError:
        return "other"


_BYTES = ("memory", "memory_used", "memlock", "size", "capacity", "available", "total", "l2", "l3")
_HERTZ = ("clock_sm_max", "clock_memory_max", "clock_sm_application", "max_frequency")
_WATTS = ("power_limit", "power_limit_default", "power_limit_enforced")


def shown(fact: Fact) -> str:
    """A fact's value in words: sizes are facts in bytes, clocks in Hz, power in W."""
    value, last = fact.value, fact.key.lower().rsplit(".", 1)[-1]
    if isinstance(value, bool | str):
        return printable(figure(value), 300)
    if last in _BYTES or last.endswith("_bytes"):
        return figure(float(value), "bytes") if value >= 0 else str(value)
    if last in _HERTZ or last.endswith("_hz"):
        return figure(value / 1e6, "MHz")
    if last in _WATTS:
        return figure(float(value), "W")
    return f"{value:,}" if isinstance(value, int) else figure(value)


def _answer(measured: Measured, uniform: list[Tally], odd: list[Tally]) -> str:
    nodes = [subject for subject in measured.subjects_with_facts if _kind(subject) == "node"]
    if len(nodes) < 2:
        return f"{_headline(uniform)} There is no second node to compare with."
    between = [tally for tally in odd if tally.kind == "node"]
    if not between:
        return f"All {len(nodes)} nodes have the same software and settings. {_headline(uniform)}"
    return f"{len(nodes)} nodes differ in {listed((tally.key for tally in between), 6)}. {_headline(uniform)}"


def _headline(tallies: list[Tally]) -> str:
    """What most nodes are, in one sentence."""
    common = {tally.key: tally.ordered[0][0] for tally in tallies if tally.kind == "node"}
    names = {"os.kernel": "kernel ", "driver.version": "driver ", "driver.cuda": "CUDA ", "torch.version": "torch "}
    words = [f"{names.get(key, '')}{common[key]}" for key in _HEADLINE if key in common]
    return f"{', '.join(words)}." if words else ""


def _tables(measured: Measured, uniform: list[Tally], odd: list[Tally], flagged: frozenset[str]) -> Iterable[Table]:
    if odd:
        yield Table(
            caption="Where subjects differ",
            columns=_columns("fact", "of", "value", "subjects", "who"),
            rows=tuple(row for tally in odd for row in _deviations(tally, flagged))[:MOST_ROWS],
            on_paper="whole",
        )
    if uniform:
        rows = tuple(_majority(tally) for tally in uniform)
        yield Table(
            caption="What most have",
            columns=_columns("fact", "of", "value", "subjects"),
            rows=rows,
            folded=True,
            on_paper="whole",
        )
    identity = _identity_rows(measured)
    if identity:
        columns = _columns("subject", "fact", "value")
        yield Table(
            caption="Identity: serial numbers, UUIDs, addresses",
            columns=columns,
            rows=tuple(identity[:_MOST_NODES]),
            folded=True,
            on_paper="none",
            note=f"{len(identity) - _MOST_NODES:,} more are in facts.jsonl." if len(identity) > _MOST_NODES else "",
        )


def _columns(*heads: str) -> tuple[Column, ...]:
    return tuple(Column(title=head, numeric=head == "subjects") for head in heads)


def _deviations(tally: Tally, flagged: frozenset[str]) -> Iterable[tuple[Cell, ...]]:
    for place, (value, subjects) in enumerate(tally.ordered[:8]):
        tone = "fail" if flagged & set(subjects) else ("warn" if place else "")
        who = "the majority" if place == 0 and tally.count > 2 else listed(subjects, 8)
        yield text(tally.key, code=True), text(tally.kind), text(value, tone=tone), _count(subjects), text(who)


def _majority(tally: Tally) -> tuple[Cell, ...]:
    value, subjects = tally.ordered[0]
    return text(tally.key, code=True), text(tally.kind), text(value), _count(subjects, tally.count)


def _count(subjects: list[str], of: int | None = None) -> Cell:
    every = of is None or of == len(subjects)
    return number(len(subjects), f"{len(subjects):,}" if every else f"{len(subjects):,} of {of:,}")


def _identity_rows(measured: Measured) -> list[tuple[Cell, ...]]:
    return [
        (text(subject), text(printable(key, 128), code=True), text(shown(fact), code=True))
        for subject in sorted(measured.subjects_with_facts, key=natural)
        for key, fact in sorted(measured.facts_of(subject).items())
        if any(part in key.lower() for part in _IDENTITY)
    ]


def values_of(measured: Measured, kind: str, key: str) -> Counter[str]:
    """How often each value of a fact stands on subjects of a kind."""
    found: Counter[str] = Counter()
    for subject in measured.subjects_with_facts:
        fact = measured.facts_of(subject).get(key)
        if fact is not None and _kind(subject) == kind:
            found[shown(fact)] += 1
    return found
