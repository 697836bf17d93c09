"""What the min-model says of a fabric: who is slow, who may be, and of what nothing can be said."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from .capability import Capability
from .crowds import Crowd
from .levels import Levels, Pair


@dataclass(frozen=True, kw_only=True, slots=True)
class Culprit:
    """A slow node (`node`) or link (`pair`); one of the two is None.

    `share` of what is to be expected there, and its 95% interval. `evidence`: the pairs that show it. `confirmed`:
    seen again in retests, by the smallest effect that matters and by enough sigmas; before that it is a suspect.
    """

    node: str | None = None
    pair: Pair | None = None
    share: float
    low: float
    high: float
    evidence: tuple[Pair, ...]
    confirmed: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Undecided:
    """One of these is slow, and nothing measured tells which. `settle`: pairs to measure that would.

    `share` is that of the best pair among theirs, `shown_by`; `confirmed` as for a culprit.
    """

    nodes: tuple[str, ...]
    links: tuple[Pair, ...]
    share: float
    shown_by: Pair
    settle: tuple[Pair, ...]
    confirmed: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Blame:
    """The whole judgement. `capabilities`: of nodes that met a partner which does not hide them.

    `unsteady`: pairs that were slow in the tournament and are not alone. `hidden`: nodes that met slow partners only,
    of which nothing can be said. `crowd`: what stands for `links` where too many are slow for single faults.
    """

    levels: Levels
    nodes: tuple[Culprit, ...] = ()
    links: tuple[Culprit, ...] = ()
    undecided: tuple[Undecided, ...] = ()
    capabilities: Mapping[str, Capability] = field(default_factory=dict)
    unsteady: tuple[Pair, ...] = ()
    hidden: tuple[str, ...] = ()
    crowd: Crowd = field(default_factory=Crowd)

    @property
    def split(self) -> tuple[Pair, ...]:
        """The slow pairs of a fabric of two levels."""
        return self.crowd.split
