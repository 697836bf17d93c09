"""Where nodes that were started by a scheduler fetch their summons from the head: one TLS port, for the run's identity.

The node says its name in one line of JSON and is told what to be, or to ask again; it answers why it does not join.
"""

import contextlib
import hashlib
import socket
import ssl
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from ..evidence import RunError
from .identity import Identity
from .node_main import Summons

_PATIENCE_S = 10.0
_AGAIN_S = 0.5
_COUNTING_S = 1.0  # hundreds of nodes ask while the head counts them
_MAPPED = "::ffff:"  # an IPv4 address as a socket of both families says it
_MOST = 1 << 16
_PORTS = range(20000, 30000)  # below those that systems give out themselves


class Arrival(Struct, frozen=True, kw_only=True):
    """What a node says when it comes: its name, its number among how many; at last perhaps why it does not join."""

    name: str
    number: int = 0
    count: int = 0
    refuses: str = ""


class Answer(Struct, frozen=True, kw_only=True):
    """What the desk says: a summons, why there is none, or neither where the node is to ask again."""

    summons: Summons | None = None
    refused: str = ""


def desk_port(identity: Identity) -> int:
    """The port of a run's desk: head and nodes know it from the identity that they share."""
    digest = hashlib.sha256(identity.certificate.encode()).digest()
    return _PORTS[int.from_bytes(digest[:8]) % len(_PORTS)]


class Desk:
    """The head's end: answers each node that has the run's identity. Use as a context manager."""

    def __init__(self, identity: Identity, address: str | None, answer: Callable[[Arrival, str], Answer]) -> None:
        """`answer` is asked for each arrival, and told at which of this machine's addresses it came. An `address` of
        None listens at all of them.

        Raises RunError where the port cannot be had.
        """
        port = desk_port(identity)
        try:
            self._server = _listen(address, port)
        except OSError as error:
            where = f"{address or 'any address'}, port {port}"
            raise RunError(f"cannot listen on {where}, for the nodes: {error.strerror}") from error
        self._context = _context(identity, ssl.PROTOCOL_TLS_SERVER)
        self._answer = answer
        self._serving = threading.Thread(target=self._serve, daemon=True, name="desk")
        self._serving.start()

    def __enter__(self) -> "Desk":
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)  # wakes the thread that holds the port while it waits
        self._serving.join(_PATIENCE_S)
        self._server.close()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):  # it was closed
            while True:
                stream, _ = self._server.accept()
                threading.Thread(target=self._attend, args=(stream,), daemon=True).start()

    def _attend(self, stream: socket.socket) -> None:
        """One visitor. Whoever has not the identity, or says what is no name, is told nothing."""
        stream.settimeout(_PATIENCE_S)
        with contextlib.suppress(OSError, msgspec.MsgspecError), contextlib.ExitStack() as stack:
            inside = stack.enter_context(self._context.wrap_socket(stack.enter_context(stream), server_side=True))
            arrival = msgspec.json.decode(_line(inside), type=Arrival)
            at = str(inside.getsockname()[0]).removeprefix(_MAPPED)
            inside.sendall(msgspec.json.encode(self._answer(arrival, at)) + b"\n")


def fetch_summons(identity: Identity, addresses: Sequence[str], arrival: Arrival, within_s: float) -> Summons:
    """Ask the head, at each address where it may be, for this node's summons until it has one.

    Raises RunError where nothing has answered for so long, or where the head refuses.
    """
    context = _context(identity, ssl.PROTOCOL_TLS_CLIENT)
    until = time.monotonic() + within_s
    why = ""
    while time.monotonic() < until:
        for address in addresses:
            try:
                answer = _ask(context, (address, desk_port(identity)), arrival)
            except (OSError, msgspec.MsgspecError) as error:
                why = str(error)
                continue
            if answer.refused:
                raise RunError(f"the head at {address} refuses: {answer.refused}")
            if answer.summons is not None:
                return answer.summons
            until = time.monotonic() + within_s
            time.sleep(_COUNTING_S)
        time.sleep(_AGAIN_S)
    where = " or ".join(addresses)
    raise RunError(f"no summons from the head at {where}, port {desk_port(identity)}, within {within_s:.0f} s: {why}")


def _ask(context: ssl.SSLContext, place: tuple[str, int], arrival: Arrival) -> Answer:
    with (
        socket.create_connection(place, timeout=_PATIENCE_S) as stream,
        context.wrap_socket(stream) as inside,
    ):
        inside.sendall(msgspec.json.encode(arrival) + b"\n")
        return msgspec.json.decode(_line(inside), type=Answer)


def _listen(address: str | None, port: int) -> socket.socket:
    if address is None and socket.has_dualstack_ipv6():
        return socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=1024)
    family = socket.AF_INET6 if address and ":" in address else socket.AF_INET
    return socket.create_server((address or "", port), family=family, backlog=1024)


def _line(stream: ssl.SSLSocket) -> bytes:
    content = b""
    while not content.endswith(b"\n"):
        got = stream.recv(4096)
        if not got or len(content) > _MOST:
            raise OSError("no whole line came")
        content += got
    return content


def _context(identity: Identity, side: int) -> ssl.SSLContext:
    """TLS that knows the run's identity alone, on either side."""
    context = ssl.SSLContext(side)
    context.check_hostname = False  # the certificate is the run's, not a host's
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(cadata=identity.certificate)
    with tempfile.TemporaryDirectory(prefix="hwlottery-") as folder:  # 0700; the ssl module reads keys from files alone
        file = Path(folder) / "identity"
        file.touch(mode=0o600)
        file.write_text(identity.certificate + identity.key)
        context.load_cert_chain(file)
    return context
