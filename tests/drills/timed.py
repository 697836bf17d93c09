"""Rank functions that also tell how long they took."""

import time

from hwlottery.evidence import reading
from hwlottery.probes.pairs import reduce_together


def pairs(context, params):
    """What a pair measures, and the seconds that it took on this rank."""
    start = time.perf_counter()
    readings = reduce_together(context, params)
    return [*readings, reading("burn_in.step", context.subject, time.perf_counter() - start)]
