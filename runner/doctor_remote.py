"""What doctor runs on another host, with its Python alone: sent there as text, it needs none of our packages.

Arguments: the head's address and port, and the scratch directory. Prints one JSON line of what it found, then answers
each question that it is sent, a JSON line each, until there are no more: the host's clock, which of its peers it
reaches, whether it sees a file.
"""

from __future__ import annotations  # a host's Python may be as old as 3.8

import contextlib
import importlib
import importlib.metadata
import json
import platform
import socket
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

_REACHED_WITHIN_S = 5.0
_ALL_WITHIN_S = 40.0
_AT_ONCE = 32


def version(package: str) -> str:
    """The version of a package as it would be imported here."""
    try:
        return str(importlib.import_module(package).__version__)
    except Exception as error:  # noqa: BLE001  # a broken package may raise anything
        return f"absent ({type(error).__name__}: {error})"[:200]


def torch_version() -> str:
    """torch's version, without the seconds that importing it takes."""
    try:
        return importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        return "absent"


def trouble(question: Any) -> str:
    """What kept something from working, in one line; empty where nothing did."""
    try:
        question()
    except OSError as error:
        return str(error)
    return ""


def write_scratch(folder: str) -> None:
    """Write a small file, which is removed."""
    with tempfile.NamedTemporaryFile(prefix="hwlottery-doctor-", dir=folder) as file:
        file.write(b"x")


def address_towards(head: str, port: int) -> str:
    """This host's own address on the route to the head: where the other hosts will look for it."""
    family, kind, protocol, _, address = socket.getaddrinfo(head, port, type=socket.SOCK_DGRAM)[0]
    with socket.socket(family, kind, protocol) as probe:
        probe.connect(address)
        return str(probe.getsockname()[0])


def welcome(server: socket.socket) -> None:
    """Take every connection, and close it."""
    with contextlib.suppress(OSError):
        while True:
            server.accept()[0].close()


def unreached(peers: list[list[Any]]) -> dict[str, str]:
    """Why each of these peers (name, address, port) is not reached; those that are, are left out."""
    until = time.monotonic() + _ALL_WITHIN_S

    def ask(peer: list[Any]) -> str:
        if time.monotonic() > until:
            return "not tried: too many others gave no answer"
        return trouble(lambda: socket.create_connection((peer[1], peer[2]), timeout=_REACHED_WITHIN_S).close())

    with ThreadPoolExecutor(max_workers=_AT_ONCE) as pool:
        said = list(pool.map(ask, peers))
    return {peer[0]: why for peer, why in zip(peers, said) if why}  # noqa: B905  # strict= is of 3.10


def main(head: str, port: str, scratch: str) -> None:
    """Look, tell, and answer."""
    family = socket.AF_INET6 if ":" in head else socket.AF_INET
    server = socket.create_server(("", 0), family=family, backlog=1024)
    threading.Thread(target=welcome, args=(server,), daemon=True).start()
    found = {
        "hwlottery": version("hwlottery"),
        "torch": torch_version(),
        "python": platform.python_version(),
        "to_head": trouble(lambda: socket.create_connection((head, int(port)), timeout=10).close()),
        "scratch": trouble(lambda: write_scratch(scratch)),
        "address": address_towards(head, int(port)),
        "port": server.getsockname()[1],
    }
    print(json.dumps(found), flush=True)
    with contextlib.ExitStack() as stack:
        for line in sys.stdin:
            print(json.dumps(answer(json.loads(line), scratch, stack)), flush=True)


def answer(asked: dict[str, Any], scratch: str, stack: contextlib.ExitStack) -> Any:
    """The answer to one question. A file that is written is removed when the questions end."""
    if asked["ask"] == "reach":
        return unreached(asked["peers"])
    if asked["ask"] == "write":
        file = tempfile.NamedTemporaryFile(prefix="hwlottery-doctor-", dir=scratch)  # noqa: SIM115  # the stack closes it
        return stack.enter_context(file).name
    if asked["ask"] == "sees":
        return Path(asked["file"]).exists()
    return time.time()


if __name__ == "__main__":
    main(*sys.argv[1:])
