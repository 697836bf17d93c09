"""Which hardware this is: serial numbers, GPU UUIDs and NIC GUIDs. A node is its hardware, not its hostname."""

import hashlib
import re
import socket
from pathlib import Path

from .files import ROOT, Found, Unreadable, content_or_empty, entries, text
from .links import network_cards, rdma_devices
from .nvml import Nvml, open_nvml

# The strings that firmware carries where nobody wrote a number (seen in DMI tables of whitebox servers and VMs).
# fmt: off
_NO_IDENTITY = frozenset((
    "none", "n/a", "na", "null", "unknown", "empty", "invalid", "default", "default string", "oem", "o.e.m.",
    "not specified", "not available", "not applicable", "not provided", "not settable",
    "to be filled by o.e.m.", "to be filled by o.e.m", "system serial number", "chassis serial number",
    "base board serial number", "serial number", "system product name",
    "123456789", "0123456789", "1234567890", "03000200-0400-0500-0006-000700080009",
))
# fmt: on
_DMI = {
    "identity.product_serial": "product_serial",
    "identity.product_uuid": "product_uuid",
    "identity.board_serial": "board_serial",
    "identity.chassis_serial": "chassis_serial",
}
_DMI_NAMES = {
    "machine.vendor": "sys_vendor",
    "machine.product": "product_name",
    "machine.board": "board_name",
    "machine.bios_version": "bios_version",
    "machine.bios_date": "bios_date",
}


def is_identity(value: str) -> bool:
    """Whether a serial number or UUID tells one machine from another: not a placeholder, not one repeated sign."""
    bare = value.strip().lower()
    signs = set(re.sub(r"[\s.:_-]", "", bare))
    return len(signs) > 1 and bare not in _NO_IDENTITY


def identity_text(value: str | Unreadable, where: str) -> str | Unreadable:
    """The value where it identifies something, else why not."""
    if isinstance(value, Unreadable) or is_identity(value):
        return value
    return Unreadable(f"a placeholder, no identity ({value[:40]}): {where}")


def machine(root: Path = ROOT) -> dict[str, Found]:
    """What the firmware says of itself (DMI). Serial numbers are readable for root alone."""
    folder = root / "sys/class/dmi/id"
    found: dict[str, Found] = {
        key: identity_text(text(folder / name), str(folder / name)) for key, name in (_DMI | _DMI_NAMES).items()
    }
    found["identity.machine_id"] = identity_text(text(root / "etc/machine-id"), "/etc/machine-id")
    return found


def hardware_identity(root: Path = ROOT, nvml: Nvml | Unreadable | None = None) -> str:
    """The hardware behind this node as a short stable hash: trial ids hold it. `nvml` is opened where not given."""
    return _digest(identity_parts(root, nvml if nvml is not None else open_nvml(root)))


def hardware(root: Path, nvml: Nvml | Unreadable | None) -> dict[str, Found]:
    """The identity as a fact, and what it was made of."""
    parts = identity_parts(root, nvml)
    kinds = sorted({part.partition("=")[0] for part in parts})
    return {"hardware.identity": _digest(parts), "hardware.identity_from": ", ".join(kinds)}


def identity_parts(root: Path, nvml: Nvml | Unreadable | None) -> list[str]:
    """What tells this hardware from any other: serials, GPU UUIDs and NIC GUIDs; where there are none, the machine-id
    and the MAC addresses of physical NICs; the hostname where there is nothing at all."""
    dmi = machine(root)
    strong = [f"serial={dmi[key]}" for key in ("identity.product_serial", "identity.board_serial") if _told(dmi[key])]
    strong += [f"gpu={uuid}" for uuid in _gpu_uuids(root, nvml)]
    strong += [f"guid={card['nic.node_guid']}" for card in rdma_devices(root).values() if _told(card["nic.node_guid"])]
    if strong:
        return sorted(strong)
    weak = [f"machine-id={dmi['identity.machine_id']}"] if _told(dmi["identity.machine_id"]) else []
    weak += [f"mac={card['nic.mac']}" for card in network_cards(root).values() if _told(card["nic.mac"])]
    return sorted(weak) or [f"hostname={socket.gethostname()}"]


def _told(value: Found) -> bool:
    return not isinstance(value, Unreadable)


def _gpu_uuids(root: Path, nvml: Nvml | Unreadable | None) -> list[str]:
    """UUIDs by NVML, or by the driver's own files; a GPU never opened since boot shows question marks there."""
    if isinstance(nvml, Nvml):
        return [uuid for uuid in (nvml.uuid(index) for index in range(nvml.count)) if isinstance(uuid, str)]
    files = [gpu / "information" for gpu in entries(root / "proc/driver/nvidia/gpus")]
    return [uuid for file in files for uuid in re.findall(r"GPU-[0-9a-f-]{36}", content_or_empty(file))]


def _digest(parts: list[str]) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]
