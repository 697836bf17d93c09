"""Where work runs: nodes and their ranks, gangs with a deadline, outcomes as data."""

from .context import RankContext
from .trials import Cluster, Doubts, Finished, Joining, Node, Outcome, Raised, Rank, Round, TimedOut, Trial, WorkerLost

__all__ = [
    "Cluster",
    "Doubts",
    "Finished",
    "Joining",
    "Node",
    "Outcome",
    "Raised",
    "Rank",
    "RankContext",
    "Round",
    "TimedOut",
    "Trial",
    "WorkerLost",
]
