"""Measure every budget of one machine and print what came out. Exits 0 whatever that is: machines are noisy."""

import sys
from collections.abc import Callable, Iterator

from rich.console import Console
from rich.table import Table

from . import bench_cluster, bench_command, bench_faults, bench_probes, bench_scale, bench_sensors

Budget = tuple[str, float, float, str]
_GROUPS: tuple[Callable[[], list[Budget]], ...] = (
    bench_command.budgets,
    bench_probes.budgets,
    bench_sensors.budgets,
    bench_faults.budgets,
    bench_cluster.budgets,
    bench_scale.budgets,
)
_AT_LEAST = "x"  # ratios of ours over a bare loop's; all other budgets are upper bounds


def main() -> None:
    """Run the groups one after another, so that none disturbs another."""
    wanted = sys.argv[1:]
    table = Table("what", "measured", "budget", "", title="budgets")
    for what, measured, budget, unit in _measured(wanted):
        least = unit == _AT_LEAST
        held = measured >= budget if least else measured <= budget
        sign = "at least" if least else "at most"
        table.add_row(what, f"{measured:.3g} {unit}", f"{sign} {budget:g} {unit}", "held" if held else "MISSED")
    Console().print(table)


def _measured(wanted: list[str]) -> Iterator[Budget]:
    for group in _GROUPS:
        name = group.__module__.rpartition(".")[2].removeprefix("bench_")
        if not wanted or name in wanted:
            sys.stderr.write(f"measuring {name} …\n")
            yield from group()


if __name__ == "__main__":
    main()
