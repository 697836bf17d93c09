"""What changed between runs beside the figures: software, settings, and the machines behind the names."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Literal

from msgspec import Struct

from .past_runs import PastRun, Seen

MOST_A_RUN = 40  # kinds of changes: settings that a hostile run makes differ on every node are counted, not listed


class Change(Struct, frozen=True, kw_only=True):
    """Something that a run found otherwise than the run that last saw the same nodes; `kind`: hardware, or software and
    settings."""

    run_id: str
    time: datetime
    kind: Literal["hardware", "software"]
    what: str
    nodes: tuple[str, ...]


def changes_of(runs: Sequence[PastRun]) -> Iterator[Change]:
    """All changes in the order of the runs. What is compared is each machine with itself, for a run may be of a part of
    the cluster; what one of two runs does not know is no change."""
    machines: dict[str, str] = {}
    known: dict[str, dict[str, str]] = {}
    for run in runs:
        yield from _of_hardware(run, machines)
        yield from _of_settings(run, known)


def _of_hardware(run: PastRun, machines: dict[str, str]) -> Iterator[Change]:
    """Names behind which another machine stands than before."""
    known = [seen for seen in run.nodes if not _is_a_name(seen)]
    other = [seen.name for seen in known if machines.get(seen.name, seen.machine) != seen.machine]
    machines |= {seen.name: seen.machine for seen in known}
    if other:
        yield _change(run, "hardware", "another machine behind the name", other)


def _is_a_name(seen: Seen) -> bool:
    """Whether the hardware is not known, and the name stands for it."""
    return seen.machine == f"named {seen.name}"


def _of_settings(run: PastRun, known: dict[str, dict[str, str]]) -> Iterator[Change]:
    """Like changes of several nodes are one."""
    found: dict[str, list[str]] = {}
    for seen in run.nodes:
        before = known.setdefault(seen.machine, {})
        for name, value in seen.settings:
            if before.get(name, value) != value:
                found.setdefault(f"{name} {before[name]} → {value}", []).append(seen.name)
            before[name] = value
    for what, nodes in sorted(found.items())[:MOST_A_RUN]:
        yield _change(run, "software", what, nodes)
    rest = sorted({node for _, nodes in sorted(found.items())[MOST_A_RUN:] for node in nodes})
    if rest:
        yield _change(run, "software", f"and {len(found) - MOST_A_RUN:,} more settings", rest)


def _change(run: PastRun, kind: Literal["hardware", "software"], what: str, nodes: Sequence[str]) -> Change:
    return Change(run_id=run.run_id, time=run.started, kind=kind, what=what, nodes=tuple(nodes))
