"""The PCI tree in /sys: addresses, links, and how far two devices are apart."""

import re
from pathlib import Path

from .files import ROOT, Found, Unreadable, content_or_empty, entries, number, text

_ADDRESS = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
_NVIDIA = "0x10de"
_DISPLAY = ("0x0300", "0x0302")  # VGA and 3D controllers; a GPU's audio and USB functions have other classes
# Generation by transfer rate a lane, as `current_link_speed` has it ("32.0 GT/s PCIe").
_SPEED = re.compile(r"(\d+(?:\.\d+)?) GT/s")


def nvidia_gpus(root: Path = ROOT) -> list[str]:
    """The PCI addresses of NVIDIA GPUs, whether or not a driver holds them."""
    return [device.name for device in entries(root / "sys/bus/pci/devices") if _is_nvidia_gpu(device)]


def _is_nvidia_gpu(device: Path) -> bool:
    return content_or_empty(device / "vendor") == _NVIDIA and content_or_empty(device / "class")[:6] in _DISPLAY


def pci_address(device: Path) -> str | Unreadable:
    """The address of the PCI device that a /sys path lies in: 0000:18:00.0. A virtio NIC lies one below its own."""
    try:
        parts = device.resolve(strict=True).parts
    except OSError as error:
        return Unreadable(f"{error.strerror}: {device}")
    found = [part for part in parts if _ADDRESS.fullmatch(part)]
    return found[-1] if found else Unreadable(f"not on the PCI bus: {device}")


def path_of(address: str, root: Path = ROOT) -> tuple[str, ...]:
    """The bridges from the root complex down to a device, itself last: ("pci0000:15", "0000:15:01.0", …).

    Empty where the device is not seen.
    """
    try:
        parts = (root / "sys/bus/pci/devices" / address).resolve(strict=True).parts
    except OSError:
        return ()
    return tuple(part for part in parts if (part.startswith("pci") and ":" in part) or _ADDRESS.fullmatch(part))


def link(address: str, root: Path = ROOT) -> dict[str, Found]:
    """A device's PCIe link as it runs now and as it could: pcie.gts, pcie.width, pcie.gts_max, pcie.width_max."""
    device = root / "sys/bus/pci/devices" / address
    return {
        "pcie.gts": parse_speed(text(device / "current_link_speed")),
        "pcie.width": _width(device / "current_link_width"),
        "pcie.gts_max": parse_speed(text(device / "max_link_speed")),
        "pcie.width_max": _width(device / "max_link_width"),
    }


def parse_speed(speed: str | Unreadable) -> float | Unreadable:
    """The GT/s of "32.0 GT/s PCIe". A virtual device says "Unknown"."""
    if isinstance(speed, Unreadable):
        return speed
    found = _SPEED.match(speed)
    return float(found[1]) if found else Unreadable(f"not a link speed: {speed[:40]}")


def _width(path: Path) -> int | Unreadable:
    """Lanes. The kernel writes 0, or 255, for a device without a PCIe link of its own."""
    width = number(path)
    if isinstance(width, int) and not 1 <= width <= 32:
        return Unreadable(f"no PCIe link ({width}): {path}")
    return width


def numa_node(address: str, root: Path = ROOT) -> int | Unreadable:
    """The NUMA node a device hangs on; -1 in the file means that the platform does not tell."""
    file = root / "sys/bus/pci/devices" / address / "numa_node"
    node = number(file)
    if isinstance(node, int) and node < 0:
        return Unreadable(f"the platform does not tell ({node}): {file}")
    return node


def distance(one: tuple[str, ...], other: tuple[str, ...], numa: tuple[Found, Found]) -> str | None:
    """How far two devices are apart by their paths, in the words of `nvidia-smi topo`.

    PIX: below one bridge; PXB: several bridges, one root port; PHB: one host bridge; NODE: two host bridges of one
    NUMA node; SYS: across NUMA nodes. None where a path, or for NODE and SYS a NUMA node, is not known.
    """
    if not one or not other:
        return None
    if one[0] != other[0]:
        if any(isinstance(node, Unreadable) for node in numa):
            return None
        return "NODE" if numa[0] == numa[1] else "SYS"
    shared = _shared(one[:-1], other[:-1])
    if shared < 2:
        return "PHB"
    # Between a switch's upstream port and a device lies one downstream port: two devices of one switch share all but
    # that port; devices of cascaded switches do not.
    deepest = max(len(one), len(other)) - 1
    return "PIX" if deepest - shared <= 1 else "PXB"


def acs_redirecting(root: Path = ROOT) -> int | Unreadable:
    """How many PCI bridges send traffic between their devices up to the root complex (ACS P2P Request Redirect), which
    costs GPUDirect its speed. Reading it needs the extended configuration space, which is root's on bare metal."""
    bridges = [device for device in entries(root / "sys/bus/pci/devices") if _is_bridge(device)]
    answers = [acs_redirect(_configuration(bridge)) for bridge in bridges]
    told = [answer for answer in answers if answer is not None]
    return sum(told) if told else Unreadable(f"no ACS register is readable on {len(bridges)} PCI bridges")


def _is_bridge(device: Path) -> bool:
    return content_or_empty(device / "class").startswith("0x0604")


def _configuration(device: Path) -> bytes:
    try:
        return (device / "config").read_bytes()
    except OSError:
        return b""


def acs_redirect(configuration: bytes) -> bool | None:
    """Whether a bridge's ACS control register has P2P Request Redirect set; None where there is none to read.

    PCI Express base specification, Access Control Services: extended capability 0x000D, control register at offset 6,
    bit 2. Extended capabilities begin at 0x100; each header holds id (16 bits), version (4) and next offset (12).
    """
    offset, seen = 0x100, set[int]()
    while 0x100 <= offset <= len(configuration) - 8 and offset not in seen:
        seen.add(offset)
        header = int.from_bytes(configuration[offset : offset + 4], "little")
        if header & 0xFFFF == 0x000D:
            return bool(configuration[offset + 6] & 0x04)
        offset = header >> 20
    return None


def _shared(one: tuple[str, ...], other: tuple[str, ...]) -> int:
    count = 0
    for left, right in zip(one, other, strict=False):
        if left != right:
            break
        count += 1
    return count
