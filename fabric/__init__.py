"""What values of pairs say of nodes and of the links between them: pure mathematics, no input, no output.

Probes need it to choose what to measure again, scoring to judge. It stands below both, so that the one rule that asks
for a retest is the rule that blames, and neither learns anything of the other.
"""

from .blame import Blame, Culprit, Undecided, blame
from .capability import Capability
from .levels import Level, Levels, Observation, Pair, Thresholds, levels_of, pair_of
from .repeats import controls, wanted_retests
from .stalls import FEWEST_STALLS, stalls, stalls_again, wanted_stall_retests

__all__ = [
    "FEWEST_STALLS",
    "Blame",
    "Capability",
    "Culprit",
    "Level",
    "Levels",
    "Observation",
    "Pair",
    "Thresholds",
    "Undecided",
    "blame",
    "controls",
    "levels_of",
    "pair_of",
    "stalls",
    "stalls_again",
    "wanted_retests",
    "wanted_stall_retests",
]
