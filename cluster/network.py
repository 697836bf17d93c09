"""Which of this machine's addresses leads to another, and on which interface it lies."""

import errno
import socket

import psutil

_ANY_PORT = 9  # nothing is sent: connecting a datagram socket only chooses the route


def address_towards(host: str, port: int = _ANY_PORT) -> str:
    """This machine's own address on the route to a host. Raises OSError, which names it, where none leads there."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.connect(address)
            return str(probe.getsockname()[0])
    except UnicodeError as error:  # a label too long for a name
        raise OSError(errno.EINVAL, "no name of a host", host[:80]) from error
    except OSError as error:
        raise OSError(error.errno, error.strerror, host) from error


def interface_of(address: str) -> str | None:
    """The interface that has this address, or None where none has."""
    for name, addresses in psutil.net_if_addrs().items():
        if any(found.address.partition("%")[0] == address for found in addresses):
            return name
    return None


def host_and_port(address: str) -> tuple[str, int]:
    """The two parts of "10.0.0.1:4711", "[fd00::1]:4711" or "tls://10.0.0.1:4711". Port 0 where none is given.

    Raises ValueError for a port that is none.
    """
    rest = address.partition("://")[2] or address
    if rest.startswith("["):
        host, _, port = rest[1:].partition("]")
        port = port.removeprefix(":")
    elif rest.count(":") == 1:
        host, _, port = rest.partition(":")
    else:
        host, port = rest, ""
    if port and not (port.isdecimal() and len(port) <= 5 and int(port) < 1 << 16):
        raise ValueError(f"no port: {port[:20]!r}")
    return host, int(port or 0)
