"""Rails: the min-model where rank k of a node only ever meets rank k of another.

A place is a node's part in one rail, written n03/rail2. All rails of a cluster have one ceiling (a rail that is slow
everywhere shows), but each is a fabric of its own: n03/rail2 is never told from its links by a pair of another rail.
"""

import re
from collections.abc import Mapping
from dataclasses import replace

from .blame import blame
from .judgement import Blame
from .levels import Levels, Pair, pair_of

_PLACE = re.compile(r"(.+)/rail(\d{1,3})")


def places_of(one: str, other: str, rail: int) -> Pair:
    """Two nodes' places in a rail. Raises ValueError for a node with itself."""
    return pair_of(f"{one}/rail{rail}", f"{other}/rail{rail}")


def node_and_rail(place: str) -> tuple[str, int]:
    """A place taken apart. Raises ValueError for what is none."""
    found = _PLACE.fullmatch(place)
    if found is None:
        raise ValueError(f"not a place in a rail: {place[:80]!r}")
    return found[1], int(found[2])


def rail_subject(places: Pair) -> str:
    """n01/rail3 and n07/rail3 are n01~n07/rail3."""
    (one, rail), (other, _) = map(node_and_rail, places)
    return f"{one}~{other}/rail{rail}"


def blame_of_rails(levels: Levels) -> Mapping[int, Blame]:
    """Who is to blame on each rail, by the ceiling and the noise of all of them. In a ring each slow link stands for
    itself, however many there are: two a node show no levels of a fabric."""
    rails: dict[int, list[Pair]] = {}
    for places in levels.of:
        rails.setdefault(node_and_rail(places[0])[1], []).append(places)
    return {
        rail: blame(replace(levels, of={places: levels.of[places] for places in found}), crowds=False)
        for rail, found in sorted(rails.items())
    }
