"""Clocks of nodes against the head's, by round trips of the control plane."""

import statistics
import time
from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

ROUND_TRIPS = 12


class RoundTrip(Struct, frozen=True, kw_only=True):
    """One question: when it was sent and answered by the head's clock, and what the node's clock said. Seconds."""

    sent: float
    there: float
    back: float

    @property
    def took(self) -> float:
        """How long it took, seconds."""
        return self.back - self.sent


class ClockReading(Struct, frozen=True, kw_only=True):
    """How far a node's clock is ahead of the head's, and by how much that can be wrong. Seconds."""

    ahead: float
    uncertainty: float


def estimate(trips: Sequence[RoundTrip]) -> ClockReading:
    """The offset by the quickest round trip: the less it waited on its way, the less can be uneven about it.

    The way there and back lie within the trip, so half of it bounds the error (Cristian 1989; NTP's clock filter also
    takes the sample of minimum delay, RFC 5905 section 10). Raises ValueError without a trip.
    """
    best = min(trips, key=lambda trip: trip.took)
    return ClockReading(ahead=best.there - (best.sent + best.back) / 2, uncertainty=best.took / 2)


def ask(question: Callable[[], float], times: int = ROUND_TRIPS) -> ClockReading:
    """Ask a node's clock several times. Raises what the question raises."""
    trips = []
    for _ in range(times):
        sent = time.time()
        there = question()
        trips.append(RoundTrip(sent=sent, there=there, back=time.time()))
    return estimate(trips)


def offsets(ahead: Mapping[str, float]) -> dict[str, float]:
    """Each node's clock against the median of the nodes' and the head's clocks, seconds.

    Against the median, so that a head with a wrong clock does not make every node look wrong; a single node against
    the head, for of two clocks none is the middle one.
    """
    middle = statistics.median([0.0, *ahead.values()]) if len(ahead) > 1 else 0.0
    return {node: seconds - middle for node, seconds in ahead.items()}


def clock_here() -> float:
    """Task: the clock of the node that runs it, seconds since the epoch."""
    return time.time()
