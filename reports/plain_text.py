"""Text from a run made fit to be shown: a run is untrusted, and its facts and logs may hold anything."""

import re
from collections.abc import Iterable

# What XML 1.0 has no room for, and the marks that turn the direction of a line (they can make a name read as another).
_UNFIT = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff\u202a-\u202e\u2066-\u2069]")
REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


def printable(text: object, most: int = 4000) -> str:
    """Text without control characters, at most `most` characters long; what was cut shows as an ellipsis."""
    shown = _UNFIT.sub(REPLACEMENT, str(text))
    return shown if len(shown) <= most else shown[: most - 1] + "\N{HORIZONTAL ELLIPSIS}"


def natural(text: str) -> tuple[tuple[int, int, str], ...]:
    """A sort key under which n2 comes before n10."""
    return tuple((0, int(part), "") if part.isdecimal() else (1, 0, part) for part in re.split(r"(\d{1,18})", text))


def listed(names: Iterable[str], most: int = 5) -> str:
    """Names in a sentence: n1, n2, n3 and 61 more."""
    every = list(names)
    shown = ", ".join(every[:most])
    return shown if len(every) <= most else f"{shown} and {len(every) - most:,} more"


def sentence(text: str) -> str:
    """Text that begins with a capital and ends with a stop."""
    stripped = text.strip()
    if not stripped:
        return ""
    return stripped[0].upper() + stripped[1:] + ("" if stripped[-1] in ".!?:" else ".")
