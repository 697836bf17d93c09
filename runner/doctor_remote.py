"""What doctor runs on another host, with its Python alone: sent there as text, it needs none of our packages.

Arguments: the head's address and port, and the scratch directory. Prints one JSON line of what it found, then the
host's clock for each line that it is sent, until there are no more.
"""

import importlib
import importlib.metadata
import json
import platform
import socket
import sys
import tempfile
import time
from typing import Any


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


def main(head: str, port: str, scratch: str) -> None:
    """Look, tell, and answer for the clock."""
    server = socket.create_server(("", 0))
    found = {
        "hwlottery": version("hwlottery"),
        "torch": torch_version(),
        "python": platform.python_version(),
        "to_head": trouble(lambda: socket.create_connection((head, int(port)), timeout=10).close()),
        "scratch": trouble(lambda: write_scratch(scratch)),
        "port": server.getsockname()[1],
    }
    print(json.dumps(found), flush=True)
    for _ in sys.stdin:
        print(time.time(), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
