"""Figures and lists in words: three significant digits, the unit, no more."""

import re
from collections.abc import Sequence
from functools import lru_cache

from ..evidence.records import Params, Scalar

_IN_SIZES = ((2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"))


def figure(value: Scalar | None, unit: str = "") -> str:
    """A number with three significant digits and its unit; text and yes/no as they are."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return value
    if unit == "share":
        return percent(value)
    if unit == "bytes":
        return size(value)
    return f"{three_digits(value)} {_singular(unit) if value == 1 else unit}".rstrip()


def _singular(unit: str) -> str:
    """elements: element; s, GB/s and TFLOPS stay."""
    return unit[:-1] if unit.islower() and unit.isalpha() and len(unit) > 2 and unit.endswith("s") else unit


def three_digits(value: float) -> str:
    """1234.5 as 1,230; 0.01234 as 0.0123; 731.4 as 731. What is whole may be a count, and stays whole: 1,234,567."""
    if value == 0:
        return "0"
    if abs(value) >= 1000 and float(value).is_integer():
        return f"{int(value):,}"
    if abs(value) >= 100:
        return f"{float(f'{value:.3g}'):,.0f}"
    return f"{value:.3g}"


def percent(share: float) -> str:
    """A share as a percentage with at most one decimal and three digits: 3.2 %, 317 %, 1,230 %."""
    shown = share * 100
    if abs(shown) >= 100:
        return f"{float(f'{shown:.3g}'):,.0f} %"
    return f"{shown:.1f}".removesuffix(".0") + " %"


def size(value: float) -> str:
    """Bytes in the largest binary unit that leaves a number of at least 1."""
    for factor, unit in _IN_SIZES:
        if value >= factor:
            return f"{three_digits(value / factor)} {unit}"
    return f"{three_digits(value)} bytes"


@lru_cache(maxsize=2**16)
def natural(text: str) -> tuple[tuple[int, int, str], ...]:
    """A sort key under which n2 comes before n10."""
    return tuple((0, int(part), "") if part.isdecimal() else (1, 0, part) for part in re.split(r"(\d{1,18})", text))


def several(items: Sequence[str], most: int = 4) -> str:
    """A list in words, cut after `most`."""
    shown = ", ".join(items[:most])
    return shown if len(items) <= most else f"{shown} and {len(items) - most} more"


def counted(number: int, word: str) -> str:
    """'1 node', '2 nodes', '1,024 nodes'."""
    return f"{number} {word}" if number == 1 else f"{number:,} {word}s"


def params_in_words(params: Params) -> str:
    """Params as people write them: 'bf16, 8192 x 8192 x 8192, sustained', '1 GiB'."""
    shown = dict(params)
    parts: list[str] = []
    if {"m", "n", "k"} <= shown.keys():
        parts.append(" x ".join(str(shown.pop(key)) for key in ("m", "n", "k")))
    bytes_ = shown.pop("bytes", None)
    if isinstance(bytes_, int | float):
        parts.insert(0, size(bytes_))
    for key, value in shown.items():
        parts.append(str(value) if isinstance(value, str) else f"{key} {value}")
    return ", ".join(parts)
