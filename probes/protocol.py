"""What a probe is: a plan of trials, and rank functions that do the work.

To add one: a file here with the probe and its rank functions, its metrics in evidence/metrics.py, a line in PROBES,
its settings in the profiles, an entry in a policy, a test.
"""

from collections.abc import Generator
from typing import Any, ClassVar, Protocol

from ..cluster import Cluster, Outcome, Round
from ..evidence import metric
from ..evidence.subjects import Kind

Plan = Generator[Round, list[Outcome], None]


class Probe(Protocol):
    """A probe. `plan` is pure: no clock, no device query, no randomness but the seed in its arguments.

    `method` rises when figures stop being comparable with earlier ones. `settings` is a frozen dataclass with
    `__pydantic_config__ = {"extra": "forbid"}`; a profile gives its values per device ("cpu", "cuda").
    `outcomes = yield round` hands back the outcomes of the round's trials, in their order; each knows its trial's id.

    Three more may stand there: `subjects`, the kinds of subject on which the probe measures, where others measure the
    same metrics elsewhere; `nodes_at_least`, with fewer of which there is nothing to measure; `retests`, the metrics
    whose bad values it measures again.
    """

    name: ClassVar[str]
    method: ClassVar[str]
    metrics: ClassVar[tuple[str, ...]]
    settings: ClassVar[type]

    def plan(self, cluster: Cluster, settings: Any, seed: int) -> Plan:
        """Yield rounds of trials on disjoint ranks."""
        ...


def would_measure(probe: Probe, name: str, nodes: int) -> tuple[Kind, ...]:
    """The kinds of subject on which a probe measures a metric, on so many nodes; none with too few."""
    if nodes < getattr(probe, "nodes_at_least", 1):
        return ()
    kinds = metric(name).subjects
    own: tuple[Kind, ...] = getattr(probe, "subjects", kinds)
    return tuple(kind for kind in kinds if kind in own)
