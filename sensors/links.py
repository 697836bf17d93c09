"""NICs as the kernel shows them: /sys/class/net and /sys/class/infiniband, their state and their counters.

A NIC that speaks RDMA is named by its RDMA device (mlx5_2), any other by its network interface (eth0). Virtual
interfaces (loopback, bridges, veth) have no device behind them and are left out.
"""

import re
from pathlib import Path

from .files import ROOT, Found, Unreadable, entries, link_name, number, text
from .pci import link, pci_address

_PORT_TEXTS = {"state": "state", "physical_state": "phys_state", "link_layer": "link_layer"}


def nics(root: Path = ROOT) -> dict[str, dict[str, Found]]:
    """All physical NICs by name, each with what is known of it. Speeds in bit/s."""
    rdma = rdma_devices(root)
    covered = {card["nic.netdev"] for card in rdma.values() if isinstance(card["nic.netdev"], str)}
    ethernet = {name: card for name, card in network_cards(root).items() if name not in covered}
    return ethernet | rdma


def network_cards(root: Path = ROOT) -> dict[str, dict[str, Found]]:
    """Network interfaces with a device behind them, by name."""
    return {card.name: _network_card(root, card) for card in _physical(root)}


def _physical(root: Path) -> list[Path]:
    return [card for card in entries(root / "sys/class/net") if (card / "device").exists()]


def rdma_devices(root: Path = ROOT) -> dict[str, dict[str, Found]]:
    """RDMA devices (InfiniBand, RoCE, EFA), by name, with their ports as port1.state and so on."""
    return {card.name: _rdma_device(root, card) for card in entries(root / "sys/class/infiniband")}


def _network_card(root: Path, card: Path) -> dict[str, Found]:
    return {
        "nic.netdev": card.name,
        "nic.mac": _mac(card),
        "nic.speed": _speed(card),
        "nic.mtu": number(card / "mtu"),
        "nic.state": text(card / "operstate"),
        **_device(root, card),
    }


def _device(root: Path, card: Path) -> dict[str, Found]:
    address = pci_address(card / "device")
    pcie = {} if isinstance(address, Unreadable) else link(address, root)
    return {
        **{key: value for key, value in pcie.items() if key.endswith("_max")},
        "nic.driver": link_name(card / "device/driver"),
        "nic.pci": address,
        "nic.numa_node": _numa_node(card / "device"),
    }


def _mac(card: Path) -> str | Unreadable:
    address = text(card / "address")
    if isinstance(address, str) and not set(address) - set("0:"):
        return Unreadable(f"all zeros, no identity: {card / 'address'}")
    return address


def _speed(card: Path) -> int | Unreadable:
    """Mbit/s in the file; the kernel says -1, or refuses, where the link is down or the driver does not know."""
    speed = number(card / "speed")
    if isinstance(speed, Unreadable):
        return speed
    return speed * 1_000_000 if speed > 0 else Unreadable(f"the driver does not tell ({speed}): {card / 'speed'}")


def _numa_node(device: Path) -> int | Unreadable:
    node = number(device / "numa_node")
    if isinstance(node, int) and node < 0:
        return Unreadable(f"the platform does not tell ({node}): {device / 'numa_node'}")
    return node


def _rdma_device(root: Path, card: Path) -> dict[str, Found]:
    netdevs = [entry.name for entry in entries(card / "device/net")]
    guid = text(card / "node_guid")
    if isinstance(guid, str) and not set(guid) - set("0:"):
        guid = Unreadable(f"all zeros, no identity: {card / 'node_guid'}")
    found: dict[str, Found] = {
        "nic.node_guid": guid,
        "nic.firmware": text(card / "fw_ver"),
        "nic.board_id": text(card / "board_id"),
        "nic.netdev": netdevs[0] if netdevs else Unreadable(f"no network interface: {card / 'device/net'}"),
        **_device(root, card),
    }
    if netdevs:
        found["nic.mtu"] = number(root / "sys/class/net" / netdevs[0] / "mtu")
        found["nic.mac"] = _mac(root / "sys/class/net" / netdevs[0])
    for port in entries(card / "ports"):
        found |= _port(port)
    return found


def _port(port: Path) -> dict[str, Found]:
    found: dict[str, Found] = {
        f"port{port.name}.{key}": _after_colon(text(port / file)) for key, file in _PORT_TEXTS.items()
    }
    found[f"port{port.name}.rate"] = parse_rate(text(port / "rate"))
    found[f"port{port.name}.lid"] = number(port / "lid")
    return found


def _after_colon(value: str | Unreadable) -> str | Unreadable:
    """ "4: ACTIVE" is ACTIVE, "5: LinkUp" is LinkUp, "InfiniBand" stays."""
    return value if isinstance(value, Unreadable) else value.partition(": ")[2] or value


def parse_rate(rate: str | Unreadable) -> int | Unreadable:
    """The bit/s of "400 Gb/sec (4X NDR)"."""
    if isinstance(rate, Unreadable):
        return rate
    found = re.match(r"(\d+(?:\.\d+)?) Gb/sec", rate)
    return round(float(found[1]) * 1e9) if found else Unreadable(f"not a rate: {rate[:40]}")


def falls_so_far(root: Path = ROOT) -> dict[str, int]:
    """How often each NIC's link has gone down in its life, over its ports. Of a lifetime total only the difference
    around a load says anything. (Reading all counters of a NIC takes its firmware milliseconds: only these are.)"""
    devices = entries(root / "sys/class/infiniband")
    owner = {interface.name: card.name for card in devices for interface in entries(card / "device/net")}
    totals = {
        card.name: [number(port / "counters/link_downed") for port in entries(card / "ports")] for card in devices
    }
    for card in _physical(root):
        totals.setdefault(owner.get(card.name, card.name), []).append(number(card / "carrier_down_count"))
    return {name: sum(known) for name, found in totals.items() if (known := [n for n in found if isinstance(n, int)])}


def link_falls(before: dict[str, int], after: dict[str, int]) -> dict[str, int]:
    """How often each NIC's link went down between two readings. One that is absent from either, or went backwards
    (the device was reset), says nothing."""
    return {name: after[name] - before[name] for name in after if after[name] > before.get(name, after[name])}
