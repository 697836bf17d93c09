"""References: what hardware can do, each value with its source and date. An unknown accelerator or fabric has none."""

from .accelerators import Accelerator
from .between_runs import RunSpread, RunSpreads, run_spreads
from .entries import Entry, ReferenceKind, ReferenceValue, Source
from .fabrics import Fabric, Network, Technology
from .library import References, references_of, shipped, with_own
from .loading import ReferenceFileError, text_of

__all__ = [
    "Accelerator",
    "Entry",
    "Fabric",
    "Network",
    "ReferenceFileError",
    "ReferenceKind",
    "ReferenceValue",
    "References",
    "RunSpread",
    "RunSpreads",
    "Source",
    "Technology",
    "references_of",
    "run_spreads",
    "shipped",
    "text_of",
    "with_own",
]
