"""What samples of each metric can be at all: the bounds of its unit, or its own."""

from collections.abc import Iterable

from msgspec import Struct


class Possible(Struct, frozen=True, kw_only=True):
    """What a metric's samples can be at all, in its unit: from `least` (or only above it) to `most`, whole or not.

    What is outside is an error of the measuring, or an altered record: never a value, however good it looks.
    """

    least: float = 0.0
    above: bool = False
    most: float | None = None
    whole: bool = False

    def holds(self, number: float) -> bool:
        """Whether the metric can have this value."""
        return self.within(number) and (not self.whole or all_whole((number,)))

    def within(self, number: float) -> bool:
        """Whether a number is within the bounds, whole or not."""
        enough = number > self.least if self.above else number >= self.least
        return enough and (self.most is None or number <= self.most)

    def __str__(self) -> str:
        """Its bounds in words."""
        parts = ["a whole number"] if self.whole else []
        parts.append(f"{'above' if self.above else 'at least'} {self.least:g}")
        parts += [f"at most {self.most:g}"] if self.most is not None else []
        return ", ".join(parts)


def all_whole(numbers: Iterable[float]) -> bool:
    """Whether all are whole numbers."""
    return all(float(number).is_integer() for number in numbers)


# What values of each unit can be. Upper limits are far above any machine there is, or the end of a standard: PCIe has
# at most 32 lanes and 128 GT/s (generation 7), NVML at most 36 NVLinks. Lower ones are below any clock's tick.
_COUNT = Possible(whole=True)
_POSSIBLE: dict[str, Possible] = {
    "TFLOPS": Possible(least=1e-9, most=1e6),
    "GB/s": Possible(least=1e-9, most=1e6),
    "s": Possible(least=1e-9, most=1e8),
    "tokens/s": Possible(least=1e-3, most=1e12),
    "share": Possible(most=1.0),
    "elements": _COUNT,
    "stalls": _COUNT,
    "tensors": _COUNT,
    "files": _COUNT,
    "steps": _COUNT,
    "ranks": _COUNT,
    "errors": _COUNT,
    "rows": _COUNT,
    "lanes": Possible(whole=True, most=32),
    "links": Possible(whole=True, most=36),
    "GT/s": Possible(above=True, most=128),
    "nats": Possible(least=-1e4, most=1e4),
    "C": Possible(least=-60.0, most=250.0),
    "W": Possible(most=1e5),
    "MHz": Possible(above=True, most=1e5),
    "cores": Possible(most=1e5),
    "1/node-day": Possible(),
}
# Where a unit's bounds are not the metric's own: a part of a save may take no time at all, both ends of a reduction may
# come in the same tick, sensors of many threads may cost more than one core, and a share of a peak can exceed it by no
# more than the peak's own rounding and clock; a clock may stand decades before or after the others.
_OWN: dict[str, Possible] = {
    "all_reduce.skew": Possible(most=1e8),
    "checkpoint.stage": Possible(most=1e8),
    "checkpoint.write": Possible(most=1e8),
    "checkpoint.sync": Possible(most=1e8),
    "checkpoint.commit": Possible(most=1e8),
    "health.sensor_cost": Possible(most=1e5),
    "matmul.mfu": Possible(above=True, most=1.05),
    "burn_in.mfu": Possible(above=True, most=1.05),
    "rail.line_share": Possible(above=True, most=1.05),
    "fabric.concurrency_kept": Possible(above=True, most=10.0),
    "clock.offset": Possible(least=-1e10, most=1e10),
}


def possible_of(name: str, unit: str) -> Possible:
    """What samples of a metric can be: its own bounds, else its unit's. Raises KeyError for an unknown unit."""
    return _OWN.get(name, _POSSIBLE[unit])
