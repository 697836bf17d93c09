"""Which runs were of the same cluster, so that their differences show the variance from run to run."""

from collections.abc import Collection, Mapping, Sequence

from .comparison_sides import Side


def clusters(sides: Sequence[Side]) -> list[int]:
    """The number of each run's cluster. The same: half of its hardware and more, or provider and cluster of the same
    names with accelerators of the same name."""
    first: list[int] = []
    for place, side in enumerate(sides):
        known = next((earlier for earlier in range(place) if _same(sides[earlier], side)), None)
        first.append(place if known is None else first[known])
    return first


def _same(one: Side, other: Side) -> bool:
    first, second = one.machines, other.machines
    if first and second:
        return 2 * len(first & second) >= min(len(first), len(second))
    names = [(side.header.provider, side.header.cluster) for side in (one, other)]
    named = all(names[0]) and names[0] == names[1]
    return named and one.most("accelerator.name") == other.most("accelerator.name")


def repeated(
    logs: Mapping[int, float], same: Sequence[int], kinds: Sequence[tuple[str, ...]], left_out: Collection[int]
) -> list[list[float]]:
    """The logarithms of a figure by cluster, of runs that may be compared with each other and were run again."""
    groups: dict[tuple[int, tuple[str, ...]], list[float]] = {}
    for place, value in logs.items():
        if place not in left_out:
            groups.setdefault((same[place], kinds[place]), []).append(value)
    return [values for values in groups.values() if len(values) > 1]
