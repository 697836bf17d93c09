"""What the head sends to a node, and what comes back: plain values, pickled inside the run's TLS."""

from collections.abc import Mapping
from typing import Any, Literal

from msgspec import Struct

from ..evidence import AnyReading, Device

Fate = Literal["returned", "raised", "timed_out", "died", "ended"]


class RankSpec(Struct, frozen=True, kw_only=True):
    """How a rank's child process is to be started. Another env needs another process: libraries read theirs once."""

    subject: str
    node: str
    index: int
    device: Device
    slots: int  # CPU ranks that share this node's cores; 1 where each rank has an accelerator
    interface: str = "lo"  # on which ranks of several nodes meet
    env: tuple[tuple[str, str], ...] = ()


class Warmth(Struct, frozen=True, kw_only=True):
    """A rank that is ready: its process, and what it found when it started.

    `meeting` is "ADDRESS:PORT" of the store where the ranks of several nodes meet, on the rank that was to open one.
    """

    pid: int
    threads: int
    cpus: tuple[int, ...]
    meeting: str | None = None


class Prepared(Struct, frozen=True, kw_only=True):
    """A node's ranks before a trial: the warmth of each, or why it did not start; and those that had died since the
    trial before, while nothing was asked of them."""

    ready: dict[str, Warmth | str]
    died_idle: tuple[str, ...] = ()


class Part(Struct, frozen=True, kw_only=True):
    """One node's part of a trial. `ranks` and `nodes` are those of the whole trial, by rank; `local` are the places
    in them that this node takes; `meeting` is where ranks of several nodes meet, of one node in a file."""

    trial: str
    function: str
    params: Mapping[str, Any]
    env: tuple[tuple[str, str], ...]
    collective: bool
    deadline_s: float
    ranks: tuple[str, ...]
    nodes: tuple[str, ...]
    local: tuple[int, ...]
    seed: int
    meeting: str | None = None


class Order(Struct, frozen=True, kw_only=True):
    """One rank's part of a trial."""

    part: Part
    rank: int
    local_rank: int
    scratch: str
    mark: str
    log: str
    store: str | None  # the file where the ranks meet, where a trial is collective and of one node


class RankResult(Struct, frozen=True, kw_only=True):
    """What became of one rank in a trial; `stuck` where the kernel would not end its process, `follows` where it raised
    inside a collective, which may only follow from what befell a peer."""

    subject: str
    fate: Fate
    readings: tuple[AnyReading, ...] = ()
    message: str = ""
    stuck: bool = False
    follows: bool = False
    log: str = ""


class PartResult(Struct, frozen=True, kw_only=True):
    """What became of a node's part: a result a local rank, and what was read beside them."""

    node: str
    ranks: tuple[RankResult, ...]
    beside: tuple[AnyReading, ...] = ()
    replaced: tuple[str, ...] = ()
