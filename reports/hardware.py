"""Which hardware a name stands for: the serial numbers, UUIDs and GUIDs by which a provider finds it."""

from ..evidence import parse_subject
from .finding_evidence import nodes_of
from .measured import Measured
from .plain_text import natural, printable

# Facts by which hardware is found, with their word, the most telling first.
_KEYS = {
    "identity.product_serial": "serial",
    "identity.product_uuid": "UUID",
    "identity.chassis_serial": "chassis serial",
    "identity.board_serial": "board serial",
    "accelerator.serial": "serial",
    "accelerator.uuid": "UUID",
    "nic.node_guid": "GUID",
    "nic.mac": "MAC",
    "hardware.identity": "identity (hash)",
}
_SERIALS = ("identity.product_serial", "identity.chassis_serial", "identity.board_serial", "identity.product_uuid")


def hardware_of(measured: Measured, subject: str) -> str:
    """What is known of the hardware behind a subject: serial 123, UUID GPU-…; "not readable" where nothing is."""
    facts = measured.facts_of(subject)
    known = [f"{word} {printable(facts[key].value, 100)}" for key, word in _KEYS.items() if key in facts]
    return ", ".join(known) or "not readable from the tenant's side"


def hardware_behind(measured: Measured, subject: str) -> tuple[tuple[str, str], ...]:
    """A subject's nodes, and the subject itself where it is a device, each with its numbers."""
    names = dict.fromkeys((*nodes_of(subject), *([subject] if _is_device(subject) else [])))
    return tuple((f"Hardware of {name}", hardware_of(measured, name)) for name in names)


def serial_of(measured: Measured, node: str) -> str:
    """The one number by which a node is claimed: its serial, else its UUID, else the hash of what is known of it; its
    name where nothing is."""
    facts = measured.facts_of(node)
    found = (f"{_KEYS[key]} {facts[key].value}" for key in (*_SERIALS, "hardware.identity") if key in facts)
    return printable(next(found, f"{node}, whose hardware is not known"), 120)


def devices_of(measured: Measured, node: str) -> list[str]:
    """The accelerators and NICs of a node by which it can be found, in natural order."""
    told = (key for key in _KEYS if not key.startswith(("identity", "hardware")))
    keys = frozenset(told)
    return sorted((each for each in _on(measured, node) if keys & measured.facts_of(each).keys()), key=natural)


def _on(measured: Measured, node: str) -> list[str]:
    return [each for each in measured.subjects_with_facts if each.startswith(f"{node}/") and _is_device(each)]


def _is_device(subject: str) -> bool:
    try:
        return parse_subject(subject).kind in ("gpu", "nic")
    except ValueError:
        return False
