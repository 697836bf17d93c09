"""How many samples a profile takes on accelerators, in words for the annex: a number, or for how long it measures."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..probes.profiles import Profile

_EACH_ITERATION = "{0.iterations:,}"
# By the metric, else by the probe.
_WORDS: Mapping[str, str] = {
    "matmul": "all in {0.sustained_s:g} s",
    "matmul.mismatches": "{0.repeats:,}",
    "matmul.nonfinite": "{0.repeats:,}",
    "memory": _EACH_ITERATION,
    "all_reduce": _EACH_ITERATION,
    "nics": _EACH_ITERATION,
    "pairs": _EACH_ITERATION,
    "rails": _EACH_ITERATION,
    "collectives": _EACH_ITERATION,
    "filesystem": "{0.repeats:,}",
    "checkpoint": "{0.saves:,}",
    "topology": "under {0.load_s:g} s of load",
    "burn_in": "all in {hours:g} h",
}


def samples_told(profile: "Profile | None", probe: str, metric: str = "") -> str:
    """The samples of a metric by a profile; "" where nothing says it."""
    settings = profile.settings(probe, "cuda") if profile is not None else None
    words = _WORDS.get(metric) or _WORDS.get(probe)
    if settings is None or words is None:
        return ""
    return words.format(settings, hours=getattr(settings, "seconds", 0) / 3600)
