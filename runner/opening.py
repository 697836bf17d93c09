"""Opening a start of a run: figures of unlike software, hardware or methods are not mixed in silence."""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import msgspec

from .. import __version__
from ..evidence import Event, RunError, RunHeader, Segment, Tier
from ..evidence.plain_words import plain_words
from ..evidence.writing import now
from ..probes import PROBES
from .accepting import is_join_beginning, newcomer_records
from .earlier import last_seen
from .identify import Identified, differences


class Opening(NamedTuple):
    """The header with the new start in it; whether all is to be measured again, for something has changed."""

    header: RunHeader
    all_again: bool


def opened(
    header: RunHeader, found: Mapping[str, Identified], *, command: tuple[str, ...], rerun_changed: bool
) -> Opening:
    """Add a start to a run's header, with what was found on each node that joined.

    Raises RunError, with the differences, where something is not as it was when it was last seen, unless
    `rerun_changed`.
    """
    segment = Segment(
        start=now(),
        hwlottery=__version__,
        methods={probe.name: probe.method for probe in PROBES},
        software={name: _plain(identified.software) for name, identified in found.items()},
        hardware={name: plain_words(identified.hardware) for name, identified in found.items()},
        command=command,
    )
    before = last_seen(header)
    changed = differences(before, segment) if before else []
    if changed and not rerun_changed:
        whose = header.joins[-1].run_id if is_join_beginning(header) else header.run_id
        raise RunError(
            f"run {whose} was measured with something else: {'; '.join(changed)}. Its figures would be mixed "
            "with others: give --rerun-changed to measure everything again, or start a new run"
        )
    joins = header.joins
    if changed and is_join_beginning(header):
        joins = (*joins[:-1], msgspec.structs.replace(joins[-1], again=True))
    more = msgspec.structs.replace(header, segments=(*header.segments, segment), joins=joins)
    return Opening(header=more, all_again=bool(changed))


def _plain(versions: Mapping[str, str]) -> dict[str, str]:
    return {plain_words(name): plain_words(version) for name, version in versions.items()}


def start_records(header: RunHeader, told: str, here: Iterable[str]) -> Iterator[Event]:
    """That a start has begun, who is here, and at the beginning of a join what is to be said of newcomers."""
    yield Event(time=now(), kind="run_started", detail=told)
    yield from (Event(time=now(), kind="node_joined", subject=name) for name in here)
    if told == "joined":
        yield from newcomer_records(header)


def with_tiers(header: RunHeader, tiers: Mapping[str, Tier]) -> RunHeader:
    """The header with access tiers that nodes have shown in its last start."""
    *before, last = header.segments
    last = msgspec.structs.replace(last, tiers={**last.tiers, **tiers})
    return msgspec.structs.replace(header, segments=(*before, last))
