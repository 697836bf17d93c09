"""The kernel's log, read only: NVIDIA's Xid lines since a time, and those that come while we watch.

Xid lines look so, with the PCI address and the number of the error:
"NVRM: Xid (PCI:0000:1b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."
"""

import os
import re
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct

from .files import ROOT, Found, Unreadable

_XID = re.compile(r"NVRM: Xid \((?:PCI:)?([0-9A-Fa-f:.]+)\): (\d+)(?:, (.*))?")
# A record of /dev/kmsg: "6,1234,98765432,-;text": priority, number, microseconds since boot, flags.
_RECORD = re.compile(r"(\d+),(\d+),(\d+),[^;]*;([^\n]*)")
_LARGEST_RECORD = 8192
_MOST_RECORDS = 100_000  # in one look: more than any ring buffer holds


class Xid(Struct, frozen=True, kw_only=True):
    """One Xid. `pci` is the GPU's address without its function, in lower case; `uptime_s` is since boot."""

    code: int
    pci: str
    text: str
    uptime_s: float


def parse_record(record: str) -> Xid | None:
    """The Xid in one record of /dev/kmsg, or None."""
    found = _RECORD.match(record)
    xid = _XID.search(found[4]) if found else None
    if found is None or xid is None:
        return None
    return Xid(code=int(xid[2]), pci=xid[1].lower(), text=(xid[3] or "")[:500], uptime_s=int(found[3]) / 1e6)


class KernelLog:
    """/dev/kmsg from the moment of opening (or from its beginning), without ever waiting."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self.lost = False  # records were overwritten before we read them

    @classmethod
    def open(cls, root: Path = ROOT, from_start: bool = False) -> "KernelLog | Unreadable":
        """Open it. Unreadable where the tenant may not."""
        try:
            descriptor = os.open(root / "dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
        except OSError as error:
            return Unreadable(f"{error.strerror}: /dev/kmsg")
        log = cls(descriptor)
        try:
            os.lseek(descriptor, 0, os.SEEK_SET if from_start else os.SEEK_END)
        except OSError as error:
            log.close()
            return Unreadable(f"{error.strerror}: /dev/kmsg")
        return log

    def new_records(self) -> list[str] | Unreadable:
        """The records since the last look."""
        records: list[str] = []
        while len(records) < _MOST_RECORDS:
            try:
                record = os.read(self._descriptor, _LARGEST_RECORD)
            except BlockingIOError:
                break
            except BrokenPipeError:  # overwritten before we came: the next read goes on with what there is
                self.lost = True
                continue
            except OSError as error:
                return Unreadable(f"{error.strerror}: /dev/kmsg")
            if not record:
                break
            records.append(record.decode(errors="replace"))
        return records

    def new_xids(self) -> list[Xid] | Unreadable:
        """The Xids since the last look."""
        records = self.new_records()
        return records if isinstance(records, Unreadable) else xids(records)

    def close(self) -> None:
        """Close it."""
        os.close(self._descriptor)


def xids(records: Iterable[str]) -> list[Xid]:
    """The Xids among records."""
    return [xid for record in records if (xid := parse_record(record))]


def log_facts(root: Path = ROOT) -> dict[str, Found]:
    """How many Xids the kernel's buffer holds already, and which: what was before we came."""
    found = xids_since(float("inf"), root)
    if isinstance(found, Unreadable):
        return {"kernel_log.xids": found}
    codes = ", ".join(f"{code} x{count}" for code, count in sorted(Counter(xid.code for xid in found).items()))
    counted: dict[str, Found] = {"kernel_log.xids": len(found)}
    return counted | ({"kernel_log.xid_codes": codes} if codes else {})


def xids_since(seconds_ago: float, root: Path = ROOT) -> list[Xid] | Unreadable:
    """The Xids of the last so many seconds, as far back as the kernel's buffer reaches."""
    log = KernelLog.open(root, from_start=True)
    if isinstance(log, Unreadable):
        return log
    found = log.new_xids()
    log.close()
    if isinstance(found, Unreadable):
        return found
    begin = time.clock_gettime(time.CLOCK_MONOTONIC) - seconds_ago
    return [xid for xid in found if xid.uptime_s >= begin]
