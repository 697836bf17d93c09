"""What a host or a process has said, as it becomes a record: its control characters are shown, and do nothing."""

import re

import msgspec

from .records import AnyRecord, Event, Fact, NotMeasured

# Control characters but tab and line end; marks that turn the direction of a line; halves of a pair.
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def plain_words(text: str) -> str:
    """The text with each control character as its escape, such as \\x1b: a reader's terminal obeys none of them."""
    return text if text.isascii() and text.isprintable() else _CONTROLS.sub(_escape, text)


def in_plain_words(record: AnyRecord) -> AnyRecord:
    """A record whose free text has no control characters."""
    match record:
        case Event() | NotMeasured():
            detail = plain_words(record.detail)
            return record if detail is record.detail else msgspec.structs.replace(record, detail=detail[:4000])
        case Fact(value=str() as value):
            return msgspec.structs.replace(record, value=plain_words(value))
    return record


def _escape(found: re.Match[str]) -> str:
    number = ord(found[0])
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}"
