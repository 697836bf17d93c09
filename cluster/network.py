"""Which of this machine's addresses leads to another, and on which interface it lies."""

import socket

import psutil

_ANY_PORT = 9  # nothing is sent: connecting a datagram socket only chooses the route


def address_towards(host: str, port: int = _ANY_PORT) -> str:
    """This machine's own address on the route to a host. Raises OSError where none leads there."""
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)[0]
    with socket.socket(family, kind, protocol) as probe:
        probe.connect(address)
        return str(probe.getsockname()[0])


def interface_of(address: str) -> str | None:
    """The interface that has this address, or None where none has."""
    for name, addresses in psutil.net_if_addrs().items():
        if any(found.address.partition("%")[0] == address for found in addresses):
            return name
    return None


def host_and_port(address: str) -> tuple[str, int]:
    """The two parts of "10.0.0.1:4711", "[fd00::1]:4711" or "tls://10.0.0.1:4711". Port 0 where none is given.

    Raises ValueError for a port that is no number.
    """
    rest = address.partition("://")[2] or address
    if rest.startswith("["):
        host, _, port = rest[1:].partition("]")
        port = port.removeprefix(":")
    elif rest.count(":") == 1:
        host, _, port = rest.partition(":")
    else:
        host, port = rest, ""
    return host, int(port or 0)
