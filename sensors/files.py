"""Reading /proc and /sys: a value, or why there is none. Nothing here raises and nothing is invented."""

from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from ..evidence import Observed
from ..evidence.records import Reason, Scalar

ROOT = Path("/")
_UNSUPPORTED = ("NVML: Not Supported", "no NVML")
_CLOSED = ("Permission denied", "Operation not permitted", "NVML: Insufficient Permissions")


class Unreadable(Struct, frozen=True):
    """What could not be read, and why: no permission, not there, or no answer. It is never a value."""

    why: str

    @property
    def reason(self) -> Reason:
        """The reason it gives a metric that needed it."""
        if self.why.startswith(_CLOSED):
            return "closed_to_tenant"
        return "unsupported" if self.why.startswith(_UNSUPPORTED) else "not_returned"


Found = Scalar | Unreadable


def text(path: Path) -> str | Unreadable:
    """The content of a small file without the blanks around it."""
    try:
        content = path.read_text(errors="replace").strip("\0 \t\r\n")
    except OSError as error:
        return Unreadable(f"{error.strerror}: {path}")
    return content or Unreadable(f"empty: {path}")


def number(path: Path) -> int | Unreadable:
    """The whole number in a file, decimal or 0x-hexadecimal."""
    content = text(path)
    if isinstance(content, Unreadable):
        return content
    try:
        return int(content, 0)
    except ValueError:
        return Unreadable(f"not a number ({content[:40]}): {path}")


def content_or_empty(path: Path) -> str:
    """The content of a file for a parser to which an unreadable file and an empty one are the same."""
    content = text(path)
    return "" if isinstance(content, Unreadable) else content


def entries(folder: Path) -> list[Path]:
    """What lies in a folder, by name with numbers in their order; nothing where it cannot be listed."""
    try:
        return sorted(folder.iterdir(), key=_numbers_in_order)
    except OSError:
        return []


def _numbers_in_order(path: Path) -> tuple[str, int, str]:
    stem = path.name.rstrip("0123456789")
    digits = path.name[len(stem) :]
    return (stem, int(digits) if digits else -1, path.name)


def link_name(path: Path) -> str | Unreadable:
    """The last part of where a symbolic link points to: a driver, a subsystem."""
    try:
        return path.readlink().name
    except OSError as error:
        return Unreadable(f"{error.strerror}: {path}")


def facts(subject: str, found: Mapping[str, Found]) -> list[Observed]:
    """Facts of one subject. What could not be read becomes the fact unreadable.KEY with its reason."""
    return [_fact(subject, key, value) for key, value in found.items()]


def _fact(subject: str, key: str, value: Found) -> Observed:
    if isinstance(value, Unreadable):
        return Observed(subject=subject, key=f"unreadable.{key}", value=value.why)
    return Observed(subject=subject, key=key, value=value)
