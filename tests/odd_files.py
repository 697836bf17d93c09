"""Files that are none: what a hostile directory or a careless option may name."""

import os
import socket
from pathlib import Path


def bound_socket(place: Path) -> Path:
    """A Unix socket of that name, which nobody listens at."""
    here = Path.cwd()
    os.chdir(place.parent)  # the name of a socket may have no more than 107 bytes
    try:
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(place.name)
    finally:
        os.chdir(here)
    return place
