"""The one sequence of numbers that runs through a run, and where it ends: what of it is lost, doubled or cut off."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice, pairwise
from typing import Literal

from msgspec import Struct

from .header import RunHeader
from .records import AnyRecord, Event

_SHOWN = 5


class Problem(Struct, frozen=True, kw_only=True):
    """A defect of the evidence: where, and what."""

    kind: Literal["unreadable", "gap", "duplicate", "unfinished", "count", "checksum", "missing", "foreign"]
    place: str
    detail: str

    def __str__(self) -> str:
        return f"{self.place}: {self.detail}"


def sequence_problems(numbers: Sequence[int]) -> Iterator[Problem]:
    """Of all numbers in order, those that stand more than once, and those that are missing."""
    seen = dict.fromkeys(numbers)
    if len(seen) < len(numbers):
        doubled = dict.fromkeys(low for low, high in pairwise(numbers) if low == high)
        told = _told(len(doubled), list(islice(doubled, _SHOWN)))
        yield Problem(kind="duplicate", place="records", detail=f"{told} stand more than once")
    lost = (numbers[-1] if numbers else 0) - len(seen)
    if lost:
        yield Problem(kind="gap", place="records", detail=f"{_told(lost, _first_gaps(list(seen)))} are missing")


def _first_gaps(numbers: Sequence[int]) -> list[int]:
    """The first missing numbers. Never all of them: one record numbered a thousand billion would make as many."""
    gaps = (range(low + 1, high) for low, high in pairwise([0, *numbers]))
    return list(islice(chain.from_iterable(gaps), _SHOWN))


def finish_problems(
    events: Iterable[AnyRecord], numbers: Mapping[str, Sequence[int]], header: RunHeader
) -> Iterator[Problem]:
    """The last record of a finished run is run_finished, with the last number and the counts of lines; so is the last
    of each accepted run that was joined. `numbers` are those of each file's records, in order."""
    ends = {
        record.number or 0: record for record in events if isinstance(record, Event) and record.kind == "run_finished"
    }
    if max((found[-1] for found in numbers.values() if found), default=0) not in ends:
        yield Problem(kind="unfinished", place="events.jsonl", detail="the run did not finish")
    if not ends.keys() >= {join.last_number for join in header.joins}:
        yield Problem(kind="count", place="run.json", detail="an accepted run does not end where it says")
    for number, end in sorted(ends.items()):
        yield from _miscounted(number, end, numbers)


def _miscounted(number: int, end: Event, numbers: Mapping[str, Sequence[int]]) -> Iterator[Problem]:
    if end.last_number != number:
        yield Problem(kind="count", place="events.jsonl", detail="run_finished names another last number")
    counts = {name: count for name, found in numbers.items() if (count := bisect_right(found, number))}
    if end.counts != counts:
        yield Problem(kind="count", place="events.jsonl", detail=f"run_finished counts {end.counts}, found {counts}")


def _told(count: int, first: Sequence[int]) -> str:
    shown = ", ".join(str(number) for number in first)
    return f"{count} record numbers ({shown}{', …' if count > len(first) else ''})"
