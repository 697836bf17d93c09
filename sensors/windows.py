"""Samples folded as they come: into one-minute windows for the telemetry, and into one tally a trial."""

import threading
from collections import deque
from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

from msgspec import Struct

from ..evidence.records import MOST_SAMPLES

_MOST_WINDOWS = 200_000  # a day of eight GPUs; older ones are given up where nobody takes them


class Sample(NamedTuple):
    """One reading of one sensor. `bits` are flags that stood at that moment. `idle`: taken without load, so that it
    says nothing of the work (an idle GPU's clock is low and well so)."""

    subject: str
    quantity: str
    value: float
    bits: int = 0
    idle: bool = False


class Window(Struct, frozen=True, kw_only=True):
    """One quantity of one subject over one minute (UTC, its beginning). `bits` are all flags seen in it."""

    node: str
    subject: str
    quantity: str
    minute: datetime
    minimum: float
    mean: float
    maximum: float
    count: int
    bits: int


class Tally:
    """Minimum, mean, maximum, count and OR-ed bits of samples as they come; the first samples are kept as they are."""

    __slots__ = ("bits", "count", "maximum", "minimum", "samples", "total")

    def __init__(self) -> None:
        self.samples: list[float] = []
        self.minimum = float("inf")
        self.maximum = float("-inf")
        self.total = 0.0
        self.count = 0
        self.bits = 0

    def add(self, value: float, bits: int = 0) -> None:
        """Fold one sample in."""
        self.minimum = min(self.minimum, value)
        self.maximum = max(self.maximum, value)
        self.total += value
        self.count += 1
        self.bits |= bits
        if self.count <= MOST_SAMPLES:
            self.samples.append(value)

    @property
    def mean(self) -> float:
        """The mean; a tally is only made for a sample, so that there is one. Rounding never takes it past the ends."""
        return min(max(self.total / self.count, self.minimum), self.maximum)

    @property
    def complete(self) -> bool:
        """Whether `samples` are all there were."""
        return self.count == len(self.samples)


Tallies = dict[tuple[str, str], Tally]


def fold(tallies: Tallies, samples: Iterable[Sample]) -> None:
    """Add samples to the tallies of their subject and quantity."""
    for sample in samples:
        tally = tallies.get((sample.subject, sample.quantity))
        if tally is None:
            tally = tallies[sample.subject, sample.quantity] = Tally()
        tally.add(sample.value, sample.bits)


class WindowBook:
    """Windows of one node: one is open, closed ones wait to be taken."""

    def __init__(self, node: str) -> None:
        self._node = node
        self._minute: datetime | None = None
        self._open: Tallies = {}
        self._closed: deque[Window] = deque(maxlen=_MOST_WINDOWS)
        self._lock = threading.Lock()

    def add(self, time: datetime, samples: Iterable[Sample]) -> None:
        """Fold samples of a moment in; a new minute closes the one before."""
        minute = time.replace(second=0, microsecond=0)
        with self._lock:
            if minute != self._minute:
                self._close_open()
                self._minute = minute
            fold(self._open, samples)

    def close(self) -> None:
        """Close the open minute: nothing more comes."""
        with self._lock:
            self._close_open()

    def take(self) -> list[Window]:
        """The closed windows, which are then no longer here."""
        with self._lock:
            taken = list(self._closed)
            self._closed.clear()
        return taken

    def _close_open(self) -> None:
        if self._minute is not None:
            for (subject, quantity), tally in self._open.items():
                self._closed.append(
                    Window(
                        node=self._node,
                        subject=subject,
                        quantity=quantity,
                        minute=self._minute,
                        minimum=tally.minimum,
                        mean=tally.mean,
                        maximum=tally.maximum,
                        count=tally.count,
                        bits=tally.bits,
                    )
                )
        self._open = {}
