"""What a node is, in software and hardware, at each start of a run: figures of unlike things are not mixed."""

from collections.abc import Collection, Mapping

from msgspec import Struct

from ..evidence import Segment


class Identified(Struct, frozen=True, kw_only=True):
    """A node's software versions by name, and one hash over its serial numbers, GPU UUIDs and NIC GUIDs."""

    software: dict[str, str]
    hardware: str


def identify_here() -> Identified:
    """Task: the software and hardware of the node that runs it."""
    from ..sensors.identity import hardware_identity
    from ..sensors.software import software_versions

    return Identified(software=software_versions(), hardware=hardware_identity())


def differences(before: Segment, now: Segment) -> list[str]:
    """What changed between two starts of a run, each in a few words, for whoever decides whether to go on. A node that
    is not there now, or was not there before, is no change of software or hardware."""
    changed = _changed("hwlottery", {"version": before.hwlottery}, {"version": now.hwlottery})
    changed += _changed("method of", before.methods, now.methods)
    both = before.hardware.keys() & now.hardware.keys()
    changed += _changed("hardware of", _short(before.hardware, both), _short(now.hardware, both))
    for node in sorted(before.software.keys() & now.software.keys()):
        changed += _changed(f"{node}:", before.software[node], now.software[node])
    return changed


def _changed(what: str, before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    names = sorted(name for name in before.keys() | now.keys() if before.get(name) != now.get(name))
    return [f"{what} {name} was {before.get(name, 'absent')}, is {now.get(name, 'absent')}" for name in names]


def _short(hardware: Mapping[str, str], nodes: Collection[str]) -> dict[str, str]:
    return {node: hardware[node][:12] for node in nodes}
