"""Who among like subjects is worse than the rest, and whom to measure again: pure mathematics, no input, no output.

Probes need it to choose what to measure again, scoring to judge. It stands below both, so that the one rule that asks
for a retest is the rule that blames, and neither learns anything of the other.
"""

from .group import FEWEST_PEERS, MAD_TO_SIGMA, Better, Group, Threshold, group_of, is_outlier, least_effect, worse_by
from .suspects import MOST_ATTEMPTS, controls, suspects

__all__ = [
    "FEWEST_PEERS",
    "MAD_TO_SIGMA",
    "MOST_ATTEMPTS",
    "Better",
    "Group",
    "Threshold",
    "controls",
    "group_of",
    "is_outlier",
    "least_effect",
    "suspects",
    "worse_by",
]
