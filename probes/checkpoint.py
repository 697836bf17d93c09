"""checkpoint: what a save by torch.distributed.checkpoint costs here, and whether it reads back as it was written.

Each rank holds its own shard of incompressible random tensors, as a sharded model would. A save counts from the
barrier to the last rank's fsync, the renamed metadata and the synced directory; the slowest rank's time is the save's
(MLPerf Storage submission guidelines). Then each rank drops the files from the page cache, loads its neighbour's
shard, so that it does not read what it wrote, and compares hashes. Everything written is removed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from ..cluster import Cluster, Node, RankContext, Trial
from ..evidence import AnyReading, Fill, Missing, Observed, Params, Reading, reading
from .protocol import Plan
from .retests import Watched, with_retests

MIB = 1 << 20
METRICS = (
    "checkpoint.save",
    "checkpoint.stage",
    "checkpoint.write",
    "checkpoint.sync",
    "checkpoint.commit",
    "checkpoint.write_rate",
    "checkpoint.read_back",
    "checkpoint.hash_mismatches",
)
# Storage varies far more than silicon does.
_WATCHED = tuple(Watched(metric=metric, effect=0.25) for metric in ("checkpoint.save", "checkpoint.read_back"))
# bytes/s of a whole node, for the plan's times alone: as a rule, and the least for which the deadline still holds.
_USUAL = {"cpu": 3e8, "cuda": 2e9}
_SLOWEST = {"cpu": 2e7, "cuda": 1e8}


@dataclass(frozen=True, kw_only=True, slots=True)
class CheckpointSettings:
    """`mib_per_rank` in tensors of `tensor_mib`; so many `saves`, each read back. 20 saves allow a p95."""

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    mib_per_rank: int
    saves: int
    tensor_mib: int = 32

    def __post_init__(self) -> None:
        """Refuse what cannot be run."""
        if min(self.mib_per_rank, self.saves, self.tensor_mib) < 1 or self.mib_per_rank % self.tensor_mib:
            raise ValueError("checkpoint needs a save or more, and mib_per_rank as a multiple of tensor_mib")


class Checkpoint:
    """The checkpoint probe: each node saves to its own scratch directory, all nodes at once."""

    name: ClassVar[str] = "checkpoint"
    method: ClassVar[str] = "1"
    metrics: ClassVar[tuple[str, ...]] = METRICS
    retests: ClassVar[tuple[str, ...]] = tuple(one.metric for one in _WATCHED)
    settings: ClassVar[type] = CheckpointSettings

    def plan(self, cluster: Cluster, settings: CheckpointSettings, seed: int) -> Plan:
        """One round, a collective of each node's ranks; and where somebody was slow all of it again."""
        trials = [_on_node(node, cluster.device, settings, seed) for node in cluster.nodes if node.ranks]
        yield from with_retests(cluster, [trials], _WATCHED, all_again=True)


def _on_node(node: Node, device: str, settings: CheckpointSettings, seed: int) -> Trial:
    size = settings.mib_per_rank * MIB
    moved = 2.0 * size * len(node.ranks) * settings.saves
    return Trial(
        function="checkpoint:save_and_read_back",
        ranks=node.ranks,
        params={
            "subject": node.filesystem,
            "directory": node.scratch,
            "bytes_per_rank": size,
            "tensor_bytes": settings.tensor_mib * MIB,
            "saves": settings.saves,
            "seed": seed,
        },
        collective=True,
        expected_s=2.0 + moved / _USUAL[device],
        deadline_s=120 + moved / _SLOWEST[device],
        fills=tuple(
            Fill(metric=metric, subject=node.filesystem, params=_key(size, len(node.ranks))) for metric in METRICS
        ),
    )


def _key(bytes_per_rank: int, ranks: int) -> Params:
    return {"bytes_per_rank": bytes_per_rank, "ranks": ranks}


# On the ranks ------------------------------------------------------------------------------------------------------


def save_and_read_back(context: RankContext, params: dict[str, Any]) -> list[AnyReading]:
    """All metrics of checkpoint, from the first rank. No space or no permission is Missing, with what it needs."""
    from .shards import SavingError, scratch_folder, timed_saves

    key = _key(params["bytes_per_rank"], context.world_size)
    try:
        with scratch_folder(context, params["directory"], params["bytes_per_rank"]) as folder:
            saves = timed_saves(context, folder, params)
    except SavingError as error:
        if context.rank != 0:
            return []
        return [
            Missing(metric=metric, subject=params["subject"], reason=error.reason, detail=str(error), params=key)
            for metric in METRICS
        ]
    if context.rank != 0:
        return []
    total = params["bytes_per_rank"] * context.world_size

    def figures(metric: str, values: list[float]) -> Reading:
        return reading(metric, params["subject"], values, **key)

    return [
        *(figures(f"checkpoint.{part}", [getattr(save, f"{part}_s") for save in saves]) for part in _PARTS),
        figures("checkpoint.write_rate", [total / save.save_s / 1e9 for save in saves]),
        figures("checkpoint.hash_mismatches", [save.hash_mismatches for save in saves]),
        Observed(subject=params["subject"], key="checkpoint.read_from", value=saves[-1].read_from),
    ]


_PARTS = ("save", "stage", "write", "sync", "commit", "read_back")
