"""What is measured: a file a probe, a line here for each. Order is the order of a run: inventory goes first, for
plans may use its facts."""

from .all_reduce import AllReduce
from .burn_in import BurnIn
from .checkpoint import Checkpoint
from .collectives import Collectives
from .filesystem import Filesystem
from .inventory import Inventory
from .matmul import Matmul
from .memory import Memory
from .nics import Nics
from .pairs import Pairs
from .protocol import Plan, Probe
from .rails import Rails
from .retention import Retention
from .topology import Topology

PROBES: tuple[Probe, ...] = (
    Inventory(),
    Topology(),
    Matmul(),
    Memory(),
    AllReduce(),
    Nics(),
    Pairs(),
    Rails(),
    Collectives(),
    Filesystem(),
    Checkpoint(),
    Retention(),
    BurnIn(),
)

__all__ = ["PROBES", "Plan", "Probe"]
