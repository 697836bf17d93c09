"""What values of pairs say of nodes and of the links between them: pure mathematics, no input, no output.

Probes need it to choose what to measure again, scoring to judge. It stands below both, so that the one rule that asks
for a retest is the rule that blames, and neither learns anything of the other.
"""

from .blame import blame
from .capability import Capability
from .crowds import Crowd
from .domains import LevelName, domains_of, level_of
from .judgement import Blame, Culprit, Undecided
from .levels import Level, Levels, Observation, Pair, Thresholds, levels_of, pair_of
from .rails import blame_of_rails, node_and_rail, places_of, rail_subject
from .repeats import controls, retests_of_parts, wanted_retests
from .stalls import FEWEST_STALLS, stalls, stalls_again, wanted_stall_retests

__all__ = [
    "FEWEST_STALLS",
    "Blame",
    "Capability",
    "Crowd",
    "Culprit",
    "Level",
    "LevelName",
    "Levels",
    "Observation",
    "Pair",
    "Thresholds",
    "Undecided",
    "blame",
    "blame_of_rails",
    "controls",
    "domains_of",
    "level_of",
    "levels_of",
    "node_and_rail",
    "pair_of",
    "places_of",
    "rail_subject",
    "retests_of_parts",
    "stalls",
    "stalls_again",
    "wanted_retests",
    "wanted_stall_retests",
]
