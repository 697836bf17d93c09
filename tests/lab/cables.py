"""The lab's cables: a bridge, and for each host a veth pair whose two ends are shaped, slowed, cut and healed."""

from .host import Host, system

# A healthy cable is shaped too, so that the cable is what is measured, and not the cores behind it.
HEALTHY_MBIT = 300


class Cables:
    """The cables of one lab, each of this rate when healthy. The bridge's own address is the head's."""

    def __init__(self, mark: str, net: str, healthy_mbit: float) -> None:
        self.bridge = f"hb{mark}"
        self.head = f"{net}.254"
        self._mark = mark
        self._healthy_mbit = healthy_mbit
        system("ip", "link", "add", self.bridge, "type", "bridge")
        system("ip", "link", "set", self.bridge, "up")
        system("ip", "addr", "add", f"{self.head}/24", "dev", self.bridge)

    def plug(self, number: int, host: Host) -> None:
        """Connect a host, with a healthy cable."""
        port = self._port(number)
        system("ip", "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", str(host.pid))
        system("ip", "link", "set", port, "master", self.bridge, "up")
        host.run("ip", "addr", "add", f"{host.address}/24", "dev", "eth0")
        host.run("ip", "link", "set", "eth0", "up")
        host.run("ip", "link", "set", "lo", "up")
        host.run("tc", "qdisc", "add", "dev", "eth0", "root", "handle", "1:", "htb", "default", "10")
        self.shape(number, host, self._healthy_mbit)

    def shape(self, number: int, host: Host, mbit: float) -> None:
        """Give both directions of a host's cable a rate. netem is not in every kernel; htb and tbf are."""
        to_host = ("qdisc", "replace", "dev", self._port(number), "root", "tbf", "rate", f"{mbit}mbit")
        system("tc", *to_host, "burst", f"{_burst_bytes(mbit)}b", "latency", "50ms")
        host.run("tc", *_class("1:", "1:1", mbit))
        host.run("tc", *_class("1:1", "1:10", mbit))

    def slow_pair(self, one: Host, other: Host, mbit: float) -> None:
        """Make only the traffic between two hosts slow: a child class of the shaped root, at both."""
        for host, peer in ((one, other), (other, one)):
            last = peer.address.rpartition(".")[2]
            host.run("tc", *_class("1:1", f"1:1{last}", mbit))
            match = ("match", "ip", "dst", f"{peer.address}/32", "flowid", f"1:1{last}")
            host.run("tc", "filter", "add", "dev", "eth0", "parent", "1:", "protocol", "ip", "u32", *match)

    def lose(self, host: Host, percent: int) -> None:
        """Drop this share of the packets that reach the host, at random."""
        chain = f"chain in {{ type filter hook input priority 0; iif eth0 numgen random mod 100 < {percent} drop; }}"
        host.run("nft", "-f", "-", stdin=f"table inet lab {{ {chain}; }}")

    def cut(self, number: int) -> None:
        """Pull the cable."""
        system("ip", "link", "set", self._port(number), "down")

    def heal(self, number: int, host: Host) -> None:
        """Make a host's cable healthy again, whatever was done to it."""
        if "table inet lab" in host.run("nft", "list", "tables"):
            host.run("nft", "delete", "table", "inet", "lab")
        host.run("tc", "qdisc", "del", "dev", "eth0", "root")
        host.run("tc", "qdisc", "add", "dev", "eth0", "root", "handle", "1:", "htb", "default", "10")
        self.shape(number, host, self._healthy_mbit)
        system("ip", "link", "set", self._port(number), "up")

    def _port(self, number: int) -> str:
        return f"hv{self._mark}-{number}"


def _burst_bytes(mbit: float) -> int:
    """What may pass unshaped after a pause: 6 ms of the rate, as a timer of 250 Hz needs, and no more of a message."""
    return max(16_384, int(mbit * 1e6 / 8 * 0.006))


def _class(parent: str, name: str, mbit: float) -> tuple[str, ...]:
    rate = f"{mbit}mbit"
    return ("class", "replace", "dev", "eth0", "parent", parent, "classid", name, "htb", "rate", rate, "ceil", rate)
