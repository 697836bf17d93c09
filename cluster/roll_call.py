"""Who comes to a run whose launcher knows how many nodes there are, and not their names: they are counted first."""

import threading
import time

from ..evidence import RunError, node_name
from .desk import Answer, Arrival, Desk
from .identity import Identity
from .place import Place

MISSING = "missing-"
_LOOK_S = 0.1


class RollCall:
    """What the head has seen of the nodes so far."""

    def __init__(self, place: Place) -> None:
        """The head itself is here."""
        self._place = place
        self._names = {place.number: place.node}
        self._conflict: str | None = None
        self._lock = threading.Lock()
        self.address: str | None = None

    def answer(self, arrival: Arrival, at: str) -> Answer:
        """Note who has come, and at which of the head's addresses; whoever is noted is to ask again."""
        with self._lock:
            self.address = self.address or at
            conflict = self._contradiction(arrival)
            if conflict is None:
                self._names[arrival.number] = arrival.name
            self._conflict = self._conflict or conflict
        return Answer(refused=conflict or "")

    def _contradiction(self, arrival: Arrival) -> str | None:
        count = self._place.count
        if node_name(arrival.name) != arrival.name:
            return f"{arrival.name[:80]!r} is no name of a node: set HWLOTTERY_NODE there"
        if arrival.count != count:
            return (
                f"{arrival.name} was told of {arrival.count} nodes, and {self._place.node} of {count}: start as many "
                "processes on each, best one a node"
            )
        numbers = {name: number for number, name in self._names.items()}
        if numbers.get(arrival.name, arrival.number) != arrival.number:
            return (
                f"two nodes call themselves {arrival.name}: start one process a node, or set HWLOTTERY_NODE to another "
                "name on each"
            )
        if self._names.get(arrival.number, arrival.name) != arrival.name:
            return f"{arrival.name} and {self._names[arrival.number]} both have the number {arrival.number}"
        return None

    def wait(self, within_s: float) -> None:
        """Wait until all have come, or the time is up. Raises RunError where what they say is contradictory."""
        until = time.monotonic() + within_s
        while time.monotonic() < until and len(self._names) < self._place.count and self._conflict is None:
            time.sleep(_LOOK_S)
        if self._conflict is not None:
            raise RunError(self._conflict)

    @property
    def here(self) -> tuple[str, ...]:
        """The names of the nodes that have come, in the order of their numbers; the head is the first."""
        with self._lock:
            return tuple(name for _, name in sorted(self._names.items()))

    @property
    def missing(self) -> tuple[str, ...]:
        """Names for those that have not: by the numbers that nobody has."""
        with self._lock:
            lacking = self._place.count - len(self._names)
            free = [number for number in range(self._place.count) if number not in self._names]
        return tuple(f"{MISSING}{number}" for number in free[:lacking])


def count_nodes(place: Place, identity: Identity, listen: str | None, within_s: float) -> RollCall:
    """Let the nodes of a run announce themselves. Raises RunError where the port cannot be had, or they contradict."""
    call = RollCall(place)
    with Desk(identity, listen, call.answer):
        call.wait(within_s)
    return call
