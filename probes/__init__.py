"""What is measured: a file a probe, a line here for each. Order is the order of a run: inventory goes first, for
plans may use its facts."""

from .all_reduce import AllReduce
from .inventory import Inventory
from .matmul import Matmul
from .protocol import Plan, Probe

PROBES: tuple[Probe, ...] = (
    Inventory(),
    Matmul(),
    AllReduce(),
)

__all__ = ["PROBES", "Plan", "Probe"]
