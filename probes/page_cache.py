"""Dropping files from the page cache, and finding out whether they are gone."""

from __future__ import annotations

import ctypes
import mmap
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

_MOST_CACHED = 0.01  # share of a file's pages: what a neighbour's readahead may have brought back


def drop_cached(folder: Path) -> None:
    """Ask the kernel to forget the folder's files. Only clean pages go, so sync them first; needs no privilege."""
    for file in _files(folder):
        with file.open("rb") as opened:
            os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def read_from(folder: Path) -> Literal["storage", "page cache", "unknown"]:
    """Where a read of the folder's files would come from: the page cache if over 1% of any file's pages are there.

    A filesystem in memory says "page cache"; one whose files cannot be mapped is unknown.
    """
    shares = [share for file in _files(folder) if (share := cached_share(file)) is not None]
    if not shares:
        return "unknown"
    return "page cache" if max(shares) > _MOST_CACHED else "storage"


def cached_share(file: Path) -> float | None:
    """Share of a file's pages in the page cache (mincore, which reads nothing in), or None where it is not told."""
    size = file.stat().st_size
    pages = -(-size // mmap.PAGESIZE)
    if not pages:
        return None
    resident = (ctypes.c_ubyte * pages)()
    try:
        with file.open("rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_COPY) as mapped:
            start = ctypes.c_char.from_buffer(mapped)
            failed = ctypes.CDLL(None).mincore(ctypes.byref(start), ctypes.c_size_t(size), resident)
            del start  # or the map could not be closed
    except OSError:
        return None
    return None if failed else sum(page & 1 for page in resident) / pages


def _files(folder: Path) -> Iterator[Path]:
    yield from (file for file in sorted(folder.iterdir()) if file.is_file())
