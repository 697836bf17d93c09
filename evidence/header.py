"""run.json: what was promised and asked before anything ran, and each start of the run since."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from .records import Instant, Name

FORMAT = 3
# Format history
# 1: the first.
# 2: `joins`: an accepted run's records may come first.
# 3: `baseline`: a copy of an earlier run's records may lie in baseline/. `keep`: a checkpoint is left behind.

MOST_JOINS = 100
# Far more than anybody rents, so that a few megabytes of header cannot ask for millions of findings.
MOST_NODES = 8192
MOST_RANKS = 256  # of a node
MOST_FILESYSTEMS = 4 * MOST_NODES

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
    ranks: Annotated[tuple[Name, ...], Meta(max_length=MOST_RANKS)]


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


class Joined(_Part, frozen=True, kw_only=True):
    """A join: an accepted run whose records come first, up to `last_number`, and who was taken in after them.

    `sha256` is that of the accepted run's SHA256SUMS, which covers each of its files; `starts` is how many segments it
    had. Newcomers are measured alone and with `partners`, which are accepted nodes. `replaces` says for whom a newcomer
    stands in, under its own name where what is behind that name is new; `former` are those, as they were promised.
    With `again` everything was measured once more, and nothing of the accepted run is judged.
    """

    run_id: Name
    sha256: str
    last_number: Annotated[int, Meta(ge=1)]
    starts: Annotated[int, Meta(ge=1)]
    newcomers: tuple[Name, ...]
    partners: tuple[Name, ...] = ()
    replaces: dict[str, str] = {}
    former: Annotated[tuple[Promised, ...], Meta(max_length=MOST_NODES)] = ()
    again: bool = False


class BaselineRun(_Part, frozen=True, kw_only=True):
    """The earlier run that this one is held against. What scoring needs of it lies in the folder baseline/; `sha256` is
    that of its SHA256SUMS, which covers each of its files."""

    run_id: Name
    sha256: str


class LeftFile(_Part, frozen=True, kw_only=True):
    """A file of a checkpoint that was left behind, as it was when it was left."""

    name: Annotated[str, Meta(pattern=r"^part-[0-9]{1,4}\.bin$")]
    size: Annotated[int, Meta(ge=0)]
    mtime_ns: int
    sha256: str


class LeftCheckpoint(_Part, frozen=True, kw_only=True):
    """A checkpoint that a run left behind, in a folder of this name below the place that the user named."""

    folder: Annotated[str, Meta(pattern=r"^hwlottery-kept-[A-Za-z0-9-]{1,64}$")]
    time: Instant
    files: Annotated[tuple[LeftFile, ...], Meta(min_length=1, max_length=1000)]


class Keep(_Part, frozen=True, kw_only=True):
    """Where a checkpoint is left behind for the next run to look for, and the one that an earlier run left there."""

    directory: Annotated[str, Meta(pattern=r"^/[^\x00-\x1f\x7f]*$", max_length=400)]
    earlier: LeftCheckpoint | None = None


class RunHeader(_Part, frozen=True, kw_only=True):
    """The content of run.json. `seed` orders what is random; `price_per_gpu_hour` is in USD; `references` and `costs`
    are the user's own files, where they were given; `run_flops` is the training run whose time and cost is asked."""

    format: Annotated[int, Meta(ge=1)]
    run_id: Name
    provider: str | None = None
    cluster: str | None = None
    price_per_gpu_hour: Annotated[float, Meta(gt=0, le=1e6)] | None = None
    profile: Document
    policy: Document
    references: Document | None = None
    costs: Document | None = None
    run_flops: Annotated[float, Meta(gt=0, le=1e40)] | None = None
    seed: Annotated[int, Meta(ge=0, le=2**63 - 1)]
    launcher: Launcher
    promised: Annotated[tuple[Promised, ...], Meta(max_length=MOST_NODES)]
    filesystems: Annotated[tuple[str, ...], Meta(max_length=MOST_FILESYSTEMS)] = ()
    declared_tier: Tier | None = None
    only: tuple[str, ...] = ()
    simulated: bool = False
    segments: tuple[Segment, ...] = ()
    joins: Annotated[tuple[Joined, ...], Meta(max_length=MOST_JOINS)] = ()
    baseline: BaselineRun | None = None
    keep: Keep | None = None

    @property
    def taking_part(self) -> tuple[Promised, ...]:
        """The promised nodes that are measured now: all of them, or a join's newcomers and their partners."""
        if not self.joins:
            return self.promised
        wanted = {*self.joins[-1].newcomers, *self.joins[-1].partners}
        return tuple(node for node in self.promised if node.node in wanted)

    @property
    def known(self) -> tuple[Promised, ...]:
        """Every node that this run may have records of: the promised ones, and those that others stand in for."""
        return (*self.promised, *(node for join in self.joins for node in join.former))

    @property
    def device(self) -> Device:
        """cuda where every promised node has accelerators that torch reaches by CUDA, else cpu."""
        return "cuda" if self.promised and all(node.device == "cuda" for node in self.promised) else "cpu"
