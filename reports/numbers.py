"""How every number, time and size in a report is written: at most three significant digits, with its unit, in UTC."""

import math
from datetime import datetime, timedelta

# Units of things that are counted: a whole number of them is shown in full.
_COUNTED = frozenset(
    {"elements", "tensors", "steps", "ranks", "errors", "rows", "links", "lanes", "nodes", "GPUs", "slots", "stalls"}
    | {"trials", "records", "tokens", "cores"}
)
_SECONDS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))
_BYTES = ((2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"))
_WORDS = {"1/node-day": "/node-day", "C": "°C", "usd": "USD"}
NOTHING = "\N{EM DASH}"


def figure(value: bool | int | float | str | None, unit: str = "") -> str:
    """A value with its unit, as a person reads it. What is not there is a dash, never 0."""
    if value is None:
        return NOTHING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return f"{value} {unit}".strip()
    if not math.isfinite(value):
        return "not finite"
    scaled, word = _scaled(float(value), unit)
    counted = unit in _COUNTED and float(value).is_integer()
    text = f"{int(value):,}" if counted else significant(scaled)
    return f"{text} {_singular(word, text)}".strip()


def significant(value: float) -> str:
    """A number to three significant digits: 38.4, 31,400, 0.0123, 1.2e-05."""
    if value == 0:
        return "0"
    rounded = float(f"{value:.3g}")
    if abs(rounded) < 1e-4:
        return f"{value:.2g}"
    decimals = max(0, 2 - math.floor(math.log10(abs(rounded))))
    text = f"{rounded:,.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text and rounded == int(rounded) else text


def span(low: float | None, high: float | None, unit: str = "") -> str:
    """An interval, its unit once: 37.9 to 38.8 %. No dash: before a number it reads as a minus."""
    if low is None and high is None:
        return NOTHING
    if low is None or high is None:
        return f"at most {figure(high, unit)}" if low is None else f"at least {figure(low, unit)}"
    left, right = figure(low, unit), figure(high, unit)
    if left == right:
        return left
    first, _, first_unit = left.partition(" ")
    _, _, last_unit = right.partition(" ")
    return f"{first if first_unit == last_unit else left} to {right}"


def size(count: float) -> str:
    """Bytes in binary units: 64 MiB."""
    for factor, word in _BYTES:
        if count >= factor:
            return f"{significant(count / factor)} {word}"
    return f"{count:.0f} B"


def percent(share: float) -> str:
    """A share as a percentage."""
    return figure(share, "share")


def below_all(share: float) -> str:
    """A share of time that is not all of it never reads 100 %."""
    shown = percent(share)
    return "over 99.9 %" if share < 1 and shown == percent(1.0) else shown


def goodput_span(low: float, high: float) -> str:
    """An interval of such shares: 97.5 % to over 99.9 %; nothing where its ends read the same."""
    left, right = below_all(low), below_all(high)
    return "" if left == right else f"{left} to {right}"


def roughly(share: float) -> str:
    """A share as a percentage to about two digits, for differences: 22 %, 3.1 %, 0.36 %."""
    percentage = abs(share) * 100
    if percentage == 0:
        return "0 %"
    if percentage < 0.01:
        return "under 0.01 %"
    decimals = 0 if percentage >= 9.95 else 1 if percentage >= 0.995 else 2
    return f"{share * 100:,.{decimals}f} %"


def dollars(amount: float) -> str:
    """An amount in USD."""
    return f"$ {significant(amount)}"


def utc(moment: datetime | None) -> str:
    """A time in UTC, to the minute."""
    return NOTHING if moment is None else f"{moment:%Y-%m-%d %H:%M} UTC"


def lasting(time: timedelta | None) -> str:
    """A duration in the two largest units that matter: 47 h 51 min."""
    if time is None:
        return NOTHING
    seconds = round(time.total_seconds())
    if seconds < 120:
        return f"{seconds} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60:02d} min"


_LONG = ((365.25 * 86_400.0, "years"), (86_400.0, "days"), (3600.0, "h"), (60.0, "min"))


def long_time(seconds: float) -> str:
    """A time of any length in the unit that leaves at least two of it: 83.2 days, 106 min, 12.1 s."""
    unit = next(((part, word) for part, word in _LONG if seconds >= 2 * part), (1.0, "s"))
    return f"{significant(seconds / unit[0])} {unit[1]}"


def number_of(count: int, thing: str) -> str:
    """A count with its noun: 1 node, 2 nodes, 512 GPUs."""
    return f"{count:,} {thing}" if count == 1 else f"{count:,} {thing}s"


def _scaled(value: float, unit: str) -> tuple[float, str]:
    if unit == "share":
        return value * 100, "%"
    if unit in ("B", "bytes"):
        return next(((value / factor, word) for factor, word in _BYTES if abs(value) >= factor), (value, "B"))
    if unit == "s" and value:
        return next(((value / part, word) for part, word in _SECONDS if abs(value) >= part), (value / 1e-6, "µs"))
    return value, _WORDS.get(unit, unit)


def _singular(unit: str, text: str) -> str:
    return unit[:-1] if text == "1" and unit in _COUNTED else unit
