"""run.json: what was promised and asked before anything ran, and each start of the run since."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from .records import Instant, Name

FORMAT = 1
# Format history
# 1: the first.

Tier = Literal["bare-root", "bare", "vm-root", "vm", "container-root", "container"]
TIERS: tuple[Tier, ...] = ("bare-root", "bare", "vm-root", "vm", "container-root", "container")
Device = Literal["cuda", "cpu"]


class _Part(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    pass


class Promised(_Part, frozen=True, kw_only=True):
    """A node as promised, written before anyone joins: what scoring demands is counted against this.

    `ranks` are the short names of its accelerators or CPU slots: gpu0, gpu1, … or slot0, slot1, …
    """

    node: Name
    device: Device
    ranks: tuple[Name, ...]


class Document(_Part, frozen=True, kw_only=True):
    """A profile or policy as it was in force: its whole text travels with the run, with its SHA-256."""

    name: Name
    sha256: str
    text: str


class Launcher(_Part, frozen=True, kw_only=True):
    """Which launcher started the run, and what it was recognised by."""

    name: Name
    why: str


class Segment(_Part, frozen=True, kw_only=True):
    """One start or resume: when, with which hwlottery and probe methods, and the software of each node."""

    start: Instant
    hwlottery: str
    methods: dict[str, str] = {}
    software: dict[str, dict[str, str]] = {}
    hardware: dict[str, str] = {}
    tiers: dict[str, Tier] = {}
    command: tuple[str, ...] = ()


class RunHeader(_Part, frozen=True, kw_only=True):
    """The content of run.json. `seed` orders what is random; `price_per_gpu_hour` is in USD; `references` is the user's
    own file, where one was given."""

    format: Annotated[int, Meta(ge=1)]
    run_id: Name
    provider: str | None = None
    cluster: str | None = None
    price_per_gpu_hour: Annotated[float, Meta(gt=0, le=1e6)] | None = None
    profile: Document
    policy: Document
    references: Document | None = None
    seed: int
    launcher: Launcher
    promised: tuple[Promised, ...]
    filesystems: tuple[str, ...] = ()
    declared_tier: Tier | None = None
    only: tuple[str, ...] = ()
    simulated: bool = False
    segments: tuple[Segment, ...] = ()

    @property
    def device(self) -> Device:
        """cuda where every promised node has accelerators that torch reaches by CUDA, else cpu."""
        return "cuda" if self.promised and all(node.device == "cuda" for node in self.promised) else "cpu"
