"""Rails as a run measured them, brought to the min-model: places like n03/rail2 in the parts of pairs' nodes."""

from collections.abc import Mapping

from msgspec import Struct

from ..fabric import Blame, Levels, Pair, blame_of_rails, levels_of, places_of
from .asking import asked
from .derived import Figures
from .pairs import observations_of, thresholds_of, why_missing
from .policy_model import Check
from .scope import nodes_of
from .values import Value

RAIL = "rail.busbw"


class RailFigures(Struct, frozen=True, kw_only=True):
    """What a run says of its rails at one message size, the largest.

    `values` are those of each two places that met, `subjects` how they are written; `missing` says why the last attempt
    has no value. `levels` is None where no rail has one.
    """

    bytes: int
    levels: Levels | None
    blame: Mapping[int, Blame]
    values: Mapping[Pair, list[Value]]
    subjects: Mapping[Pair, str]
    missing: Mapping[Pair, str]
    meetings: Mapping[str, list[Pair]]

    def met(self, place: str) -> list[Pair]:
        """The meetings of a place that have a value."""
        return self.meetings.get(place, [])

    def evidence(self, met: tuple[Pair, ...]) -> tuple[str, ...]:
        """The trials of these meetings, the last first, each once."""
        values = (value for places in met for value in self.values.get(places, []))
        return tuple(dict.fromkeys(trial for value in values for trial in reversed(value.trials)))


def rail_subjects(figures: Figures, metric: str) -> dict[Pair, str]:
    """Each two places of promised nodes on which a metric was planned or recorded, with the subject as written."""
    found: dict[Pair, str] = {}
    for subject in figures.measured.subjects(metric):
        _, is_rail, number = subject.rpartition("/rail")
        nodes = nodes_of(subject) if is_rail else ()
        if len(nodes) == 2 and nodes[0] != nodes[1] and all(figures.node(node) for node in nodes):
            found[places_of(*nodes, int(number))] = subject
    return found


def rail_figures(figures: Figures, check: Check) -> RailFigures:
    """The rails' bandwidths that a check asks for, and what the min-model says of them."""
    subjects = rail_subjects(figures, RAIL)
    values = {
        places: [value for value in figures.of(RAIL, subject) if asked(value.params, check.where)]
        for places, subject in subjects.items()
    }
    size = max((_size(value) for found in values.values() for value in found), default=0)
    at_size = {places: [value for value in found if _size(value) == size] for places, found in values.items()}
    seen = [one for places, found in at_size.items() for value in found for one in observations_of(places, value)]
    levels = levels_of(seen, thresholds_of(check.layers.peers))
    meetings: dict[str, list[Pair]] = {}
    for places in levels.of if levels else ():
        for place in places:
            meetings.setdefault(place, []).append(places)
    return RailFigures(
        bytes=size,
        levels=levels,
        blame=blame_of_rails(levels) if levels else {},
        values=at_size,
        subjects=subjects,
        missing={places: why for places, found in at_size.items() if (why := why_missing(found)) is not None},
        meetings=meetings,
    )


def _size(value: Value) -> int:
    size = value.params.get("bytes")
    return size if isinstance(size, int) and not isinstance(size, bool) and size > 0 else 0
