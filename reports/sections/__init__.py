"""The page's sections, one file each, in the order they stand on the page."""

from collections.abc import Callable

from ...scoring.verdict import Verdict
from ..layout import Section
from ..measured import Measured
from .burn_in import burn_in
from .compute import compute
from .economics import economics
from .fabric import fabric
from .health import health
from .memory import memory
from .software import software
from .storage import storage
from .topology import topology

SECTIONS: tuple[Callable[[Measured, Verdict], Section], ...] = (
    compute,
    memory,
    fabric,
    topology,
    storage,
    burn_in,
    health,
    software,
    economics,
)

__all__ = ["SECTIONS"]
