"""What a probe's plan may learn of a trial that has ended: the bandwidth that it brought, and how sure that is."""

import math
import statistics
from collections.abc import Iterable, Iterator, Sequence

from ..evidence import AnyReading, Reading
from ..fabric import Observation, Pair


def bandwidth(readings: Iterable[AnyReading], metric: str, size: int) -> tuple[float, ...]:
    """The samples of that metric at that message size; none where they did not come, or one of them is no number."""
    for one in readings:
        if isinstance(one, Reading) and one.metric == metric and one.params.get("bytes") == size:
            return one.samples if all(map(math.isfinite, one.samples)) else ()
    return ()


def observations(
    pair: Pair, readings: Iterable[AnyReading], metric: str, size: int, *, alone: bool
) -> Iterator[Observation]:  # fmt: skip
    """The pair's bandwidth at that size, where it came and is one."""
    samples = bandwidth(readings, metric, size)
    value = statistics.median(samples) if samples else 0.0
    if value > 0:
        yield Observation(pair=pair, value=value, alone=alone, error=_error(samples, value))


def _error(samples: Sequence[float], middle: float) -> float:
    """The standard error of a median, as a share of it, from the samples' median absolute deviation."""
    stray = statistics.median(abs(sample - middle) for sample in samples)
    return 1.2533 * 1.4826 * stray / middle / math.sqrt(len(samples))
