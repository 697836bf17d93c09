"""Text from a run made fit to be shown: a run is untrusted, and its facts and logs may hold anything."""

import re
from collections.abc import Iterable

from ..scoring import words

# What XML 1.0 has no room for, marks that turn the direction of a line (they can make a name read as another), and
# characters that show nothing.
_UNFIT = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff\ufeff\u061c\u200b-\u200f\u202a-\u202e\u2060-\u206f]"
)
# All that some reader takes for the end of a line: str.splitlines, Unicode's line and paragraph separators.
_LINE_END = re.compile("\r\n|[\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
natural = words.natural
_GAP = re.compile("[\t \xa0]{2,}|\t")
REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
LINE_END = " \N{DOWNWARDS ARROW WITH CORNER LEFTWARDS} "


def printable(text: object, most: int = 4000) -> str:
    """Text as one line without control characters, at most `most` characters long; what was cut shows as an ellipsis.

    A line end of whatever kind becomes a visible mark and a wide gap one space: words of a run must not be able to
    stand as a line of their own, beside those of the report.
    """
    return _cut(_UNFIT.sub(REPLACEMENT, _GAP.sub(" ", _LINE_END.sub(LINE_END, str(text)))), most)


def printable_lines(text: object, most: int = 4000) -> str:
    """Text of several lines without control characters: for logs and documents, which stand in a frame of their own."""
    return _cut(_UNFIT.sub(REPLACEMENT, _LINE_END.sub("\n", str(text))), most)


def _cut(shown: str, most: int) -> str:
    return shown if len(shown) <= most else shown[: most - 1] + "\N{HORIZONTAL ELLIPSIS}"


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
