"""References: what hardware can do, each value with its source and date. An unknown accelerator has none."""

from .accelerators import Accelerator, ReferenceValue, Source, accelerators, match_accelerator, sources
from .loading import ReferenceFileError

__all__ = [
    "Accelerator",
    "ReferenceFileError",
    "ReferenceValue",
    "Source",
    "accelerators",
    "match_accelerator",
    "sources",
]
