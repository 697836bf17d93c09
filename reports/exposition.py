"""Text for Prometheus: families of gauges, with every word escaped.

Format: https://prometheus.io/docs/instrumenting/exposition_formats/. node_exporter's textfile collector
(collector/textfile.go) reads files named *.prom, leaves out a whole file of which a sample carries a time of its own,
and fails for all where two files have the same series.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from msgspec import Struct

from .plain_text import printable

Labels = Sequence[tuple[str, str]]


class Family(Struct, frozen=True, kw_only=True):
    """One gauge: its name, what it means, and its samples by their labels."""

    name: str
    help: str
    samples: tuple[tuple[Labels, float], ...]


def exposed(families: Iterable[Family]) -> str:
    """The text of all that have a sample."""
    return "".join(line for family in families if family.samples for line in _lines(family))


def gauge(name: str, words: str, value: float | None, *labels: tuple[str, str]) -> Family:
    """A gauge of one sample; of none where there is no value."""
    samples = () if value is None else ((labels, value),)
    return Family(name=f"hwlottery_{name}", help=words, samples=samples)


def seconds(moment: datetime | None) -> float | None:
    """Seconds since 1970, as Prometheus counts time."""
    return None if moment is None else moment.timestamp()


def _lines(family: Family) -> Iterator[str]:
    yield f"# HELP {family.name} {_escaped(family.help)}\n"
    yield f"# TYPE {family.name} gauge\n"
    for labels, value in family.samples:
        told = ",".join(f'{name}="{_label(text)}"' for name, text in labels)
        yield f"{family.name}{{{told}}} {value!r}\n" if told else f"{family.name} {value!r}\n"


def _escaped(text: str) -> str:
    return printable(text, 500).replace("\\", r"\\")


def _label(text: str) -> str:
    """Backslash and quote are escaped; a line end is none any more."""
    return _escaped(text).replace('"', r"\"")
