"""Where nodes that were started by a scheduler fetch their summons from the head: one TLS port, for the run's identity.

The node says its name in one line of JSON and is told what to be; it answers whether it joins, or why not.
"""

import contextlib
import hashlib
import socket
import ssl
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
from msgspec import Struct

from ..evidence import RunError
from .identity import Identity
from .node_main import Summons

_PATIENCE_S = 10.0
_AGAIN_S = 0.5
_MOST = 1 << 16
_PORTS = range(20000, 30000)  # below those that systems give out themselves


class Arrival(Struct, frozen=True, kw_only=True):
    """What a node says when it comes: its name; the second time, why it does not join."""

    name: str
    refuses: str = ""


class Answer(Struct, frozen=True, kw_only=True):
    """What the desk says: a summons, or why there is none."""

    summons: Summons | None = None
    refused: str = ""


def desk_port(identity: Identity) -> int:
    """The port of a run's desk: head and nodes know it from the identity that they share."""
    digest = hashlib.sha256(identity.certificate.encode()).digest()
    return _PORTS[int.from_bytes(digest[:8]) % len(_PORTS)]


class Desk:
    """The head's end: hands each node that has the run's identity its summons. Use as a context manager."""

    def __init__(
        self,
        identity: Identity,
        address: str,
        summons_for: Callable[[str], Summons | None],
        refused: Callable[[str, str], None],
    ) -> None:
        """`summons_for` is asked for each name, and None refuses it; `refused` is told who does not join, and why.

        Raises RunError where the port cannot be had.
        """
        port = desk_port(identity)
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        try:
            self._server = socket.create_server((address, port), family=family, backlog=1024)
        except OSError as error:
            raise RunError(f"cannot listen on {address}:{port} for the nodes: {error.strerror}") from error
        self._context = _context(identity, ssl.PROTOCOL_TLS_SERVER)
        self._summons_for = summons_for
        self._refused = refused
        threading.Thread(target=self._serve, daemon=True, name="desk").start()

    def __enter__(self) -> "Desk":
        return self

    def __exit__(self, *_: object) -> None:
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
            summons = self._summons_for(arrival.name)
            refused = "" if summons else f"{arrival.name} is not a node of this run"
            if summons and arrival.refuses:
                self._refused(arrival.name, arrival.refuses[:500])
            inside.sendall(msgspec.json.encode(Answer(summons=summons, refused=refused)) + b"\n")


def fetch_summons(identity: Identity, address: str, arrival: Arrival, within_s: float) -> Summons:
    """Ask the head for this node's summons until it answers. Raises RunError where it does not, or refuses."""
    context = _context(identity, ssl.PROTOCOL_TLS_CLIENT)
    until = time.monotonic() + within_s
    why = ""
    while time.monotonic() < until:
        try:
            with (
                socket.create_connection((address, desk_port(identity)), timeout=_PATIENCE_S) as stream,
                context.wrap_socket(stream) as inside,
            ):
                inside.sendall(msgspec.json.encode(arrival) + b"\n")
                answer = msgspec.json.decode(_line(inside), type=Answer)
        except (OSError, msgspec.MsgspecError) as error:
            why = str(error)
            time.sleep(_AGAIN_S)
            continue
        if answer.summons is None:
            raise RunError(f"the head at {address} refuses: {answer.refused}")
        return answer.summons
    raise RunError(f"no summons from the head at {address}:{desk_port(identity)} within {within_s:.0f} s: {why}")


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
