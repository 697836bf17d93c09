"""Trials and their outcomes: what a probe asks for, and what came of it, as data.

A failure is a value here. A dead node, a hung collective or a crashed rank ends one trial and is evidence; the run
goes on.
"""

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from ..evidence import AnyReading, Device, Fill, Keep, Params
from ..evidence.records import Scalar


class Rank(Struct, frozen=True, kw_only=True):
    """A place on a node where one child process works: an accelerator, or a CPU slot where there is none."""

    subject: str  # n03/gpu2 or n03/slot1
    node: str
    index: int  # among the ranks of its node
    device: Device


class Node(Struct, frozen=True, kw_only=True):
    """A node with its ranks in order. `scratch` is where filesystem work may write on it."""

    name: str
    ranks: tuple[Rank, ...]
    scratch: str

    @property
    def filesystem(self) -> str:
        """The subject of the node's scratch filesystem."""
        return f"{self.name}/fs:{self.scratch}"


# Whether a value of a metric, on a subject and with these params, falls short of what is demanded of it.
Doubts = Callable[[str, str, Params, float], bool]


class Joining(Struct, frozen=True, kw_only=True):
    """Nodes are taken into an accepted run: `accepted` are those of its nodes that newcomers are measured with. The
    `number` of the join tells what is measured now from what was measured then."""

    number: int
    accepted: frozenset[str]


class Cluster(Struct, frozen=True, kw_only=True):
    """What a probe's plan may know: the nodes that joined, and the facts that inventory brought.

    `doubts` tells which values to measure again before they are believed, and nothing of why.

    With `joining` not everybody is new. A probe of single nodes plans for all: what accepted nodes brought is taken
    over by the trial's id. One of several nodes leaves out what concerns accepted nodes alone.
    """

    nodes: tuple[Node, ...]
    device: Device
    facts: Mapping[tuple[str, str], Scalar] = {}
    doubts: Doubts | None = None
    joining: Joining | None = None
    keep: Keep | None = None  # where a checkpoint is left behind, and the one that an earlier run left

    @property
    def ranks(self) -> tuple[Rank, ...]:
        """All ranks, node by node."""
        return tuple(rank for node in self.nodes for rank in node.ranks)

    def fact(self, subject: str, key: str) -> Scalar | None:
        """The value of a fact, or None where it was not seen."""
        return self.facts.get((subject, key))


class Trial(Struct, frozen=True, kw_only=True):
    """One piece of work on a set of ranks, under a deadline.

    `function` is "module:name" below hwlottery.probes (a dotted module stands anywhere); it is called on each rank as
    name(context, params) and returns a list of readings. With `collective` the ranks first join one process group.
    `env` is set before torch is loaded: a trial with another env gets fresh ranks. `expected_s` is for the plan shown
    to people; `deadline_s` counts from the moment all ranks are ready. `fills` are the values it is to bring: what does
    not arrive is NotMeasured.
    """

    function: str
    ranks: tuple[Rank, ...]
    params: Mapping[str, Any] = {}
    env: Mapping[str, str] = {}
    collective: bool = False
    deadline_s: float
    expected_s: float
    fills: tuple[Fill, ...]
    attempt: int = 1
    retest_of: str | None = None


Round = list[Trial]


class Finished(Struct, frozen=True, kw_only=True, tag="finished"):
    """Every rank returned. `readings` are those of all ranks, in the order of the ranks."""

    readings: tuple[AnyReading, ...]
    trial: str | None = None


class Raised(Struct, frozen=True, kw_only=True, tag="raised"):
    """The function raised on a rank: `subject` is the first that did, `message` its exception in one line."""

    subject: str
    message: str
    readings: tuple[AnyReading, ...] = ()
    trial: str | None = None


class TimedOut(Struct, frozen=True, kw_only=True, tag="timed_out"):
    """The deadline passed. `subjects` are the ranks that had not returned, without those that could be seen to wait
    for them; `stuck` those the kernel would not end; `doing` is what each of them was doing, where it could be told."""

    subjects: tuple[str, ...]
    stuck: tuple[str, ...] = ()
    doing: Mapping[str, str] = {}
    readings: tuple[AnyReading, ...] = ()
    trial: str | None = None


class WorkerLost(Struct, frozen=True, kw_only=True, tag="worker_lost"):
    """A rank's process, or its node's worker, ended during the trial. `subjects` are the ranks or nodes lost."""

    subjects: tuple[str, ...]
    message: str = ""
    readings: tuple[AnyReading, ...] = ()
    trial: str | None = None


Outcome = Finished | Raised | TimedOut | WorkerLost
