"""What is measured: a file a probe, a line here for each. Order is the order of a run: inventory goes first, for
plans may use its facts."""

from .all_reduce import AllReduce
from .burn_in import BurnIn
from .checkpoint import Checkpoint
from .filesystem import Filesystem
from .inventory import Inventory
from .matmul import Matmul
from .memory import Memory
from .pairs import Pairs
from .protocol import Plan, Probe
from .topology import Topology

PROBES: tuple[Probe, ...] = (
    Inventory(),
    Topology(),
    Matmul(),
    Memory(),
    AllReduce(),
    Pairs(),
    Filesystem(),
    Checkpoint(),
    BurnIn(),
)

__all__ = ["PROBES", "Plan", "Probe"]
