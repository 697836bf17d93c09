"""Many runs of a cluster over weeks: rolling coverage, machines that keep failing, failure rates, what was paid for.

A node is its hardware: what was measured of the machine that stood behind a name before tells nothing of the one there
now.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from msgspec import Struct

from ..evidence import CATALOGUE, Params
from .ledger import Ledger, ledger_of
from .past_runs import Middle, PastRun, Seen
from .statistics import lower_rate, upper_rate
from .values import params_key
from .verdict import VerdictWord

COVERAGE_DAYS = 7.0
FAILS_TO_BE_A_LEMON = 2  # failing in one run may be a bad day, or what was mended since


class Covered(Struct, frozen=True, kw_only=True):
    """A node of the cluster, by the machine behind its name now: when it was last measured, and with a partner."""

    node: str
    machine: str
    measured: datetime | None
    with_partner: datetime | None
    missing: tuple[str, ...]  # what of the coverage is missing: "measured", "partner"


class Lemon(Struct, frozen=True, kw_only=True):
    """A machine that fails again and again, under whatever names: the runs in which it would have had to be taken out.

    `here` is the name it stands behind now, None where it is gone; `back` says that it was gone, or had another name,
    after it had failed.
    """

    machine: str
    names: tuple[str, ...]
    here: str | None
    failed_in: tuple[str, ...]
    checks: tuple[str, ...]
    seen_in: int
    back: bool


class Point(Struct, frozen=True, kw_only=True):
    """The median of a metric over a run's subjects."""

    run_id: str
    time: datetime
    value: float
    subjects: int


class Series(Struct, frozen=True, kw_only=True):
    """A metric over weeks, with one set of params: that which most runs have."""

    metric: str
    unit: str
    better: str
    params: Params
    points: tuple[Point, ...]


class Rates(Struct, frozen=True, kw_only=True):
    """Failures pooled over runs, a node-day; each bound by exact Poisson at 95%. None where nothing was observed."""

    failures: int
    node_days: float
    low: float | None
    high: float | None


class RunLine(Struct, frozen=True, kw_only=True):
    """A run in the list."""

    run_id: str
    path: str
    started: datetime
    verdict: VerdictWord
    whole: bool
    nodes: int


class ClusterHistory(Struct, frozen=True, kw_only=True):
    """All that the runs of one cluster say together."""

    cluster: str
    runs: tuple[RunLine, ...]
    coverage: tuple[Covered, ...]
    lemons: tuple[Lemon, ...]
    series: tuple[Series, ...]
    rates: Rates
    ledger: Ledger

    @property
    def uncovered(self) -> tuple[Covered, ...]:
        """The nodes that the window does not cover."""
        return tuple(one for one in self.coverage if one.missing)


class Skipped(Struct, frozen=True, kw_only=True):
    """What lies among the runs and is none that can be read."""

    path: str
    why: str


class History(Struct, frozen=True, kw_only=True):
    """The runs of a folder, by cluster."""

    at: datetime
    days: float
    clusters: tuple[ClusterHistory, ...]
    skipped: tuple[Skipped, ...] = ()

    @property
    def exit_code(self) -> int:
        """3 where a machine that keeps failing is still there, else 4 where a node is not covered, or nothing was read;
        else 0."""
        if any(lemon.here is not None for cluster in self.clusters for lemon in cluster.lemons):
            return 3
        return 4 if not self.clusters or any(cluster.uncovered for cluster in self.clusters) else 0


def history_of(
    runs: Sequence[PastRun],
    *,
    at: datetime,
    days: float = COVERAGE_DAYS,
    nodes: tuple[str, ...] = (),
    skipped: tuple[Skipped, ...] = (),
) -> History:
    """What runs say together at a time. `nodes` are the cluster's now; without them, every node that a run promised."""
    past = sorted({run.run_id: run for run in runs if run.started <= at}.values(), key=lambda r: (r.started, r.run_id))
    names = sorted({run.cluster for run in past})
    by_name = {name: [run for run in past if run.cluster == name] for name in names}
    clusters = tuple(_of_cluster(name, by_name[name], at, timedelta(days=days), nodes) for name in names)
    return History(at=at, days=days, clusters=clusters, skipped=skipped)


def _of_cluster(
    name: str, runs: Sequence[PastRun], at: datetime, window: timedelta, nodes: tuple[str, ...]
) -> ClusterHistory:  # fmt: skip
    here = machines_now(runs, nodes)
    return ClusterHistory(
        cluster=name,
        runs=tuple(_line(run) for run in runs),
        coverage=tuple(_covered(node, machine, runs, at, window, len(here)) for node, machine in here.items()),
        lemons=tuple(_lemons(runs, here)),
        series=tuple(_series(runs)),
        rates=pooled(runs),
        ledger=ledger_of(runs, at),
    )


def _line(run: PastRun) -> RunLine:
    return RunLine(
        run_id=run.run_id,
        path=run.path,
        started=run.started,
        verdict=run.verdict,
        whole=run.whole,
        nodes=len(run.nodes),
    )


def machines_now(runs: Sequence[PastRun], nodes: tuple[str, ...] = ()) -> dict[str, str]:
    """The machine that was last seen behind each name of the cluster. A machine stands behind one name: the last."""
    last: dict[str, str] = {}
    for seen in (seen for run in runs for seen in run.nodes):
        last = {name: machine for name, machine in last.items() if machine != seen.machine or name == seen.name}
        last[seen.name] = seen.machine
    wanted = nodes or tuple(last)
    return {name: last.get(name, f"named {name}") for name in sorted(wanted)}


def _covered(  # noqa: PLR0917  # a node, and all that it is judged by
    node: str, machine: str, runs: Sequence[PastRun], at: datetime, window: timedelta, size: int
) -> Covered:
    """When the machine behind a name was last measured. Where the cluster has but one node there is no partner."""
    mine = [(run, seen) for run in runs for seen in run.nodes if seen.machine == machine]
    measured = max((min(run.ended, at) for run, seen in mine if seen.measured), default=None)
    paired = max((min(run.ended, at) for run, seen in mine if seen.partners), default=None)
    missing = ["measured"] if measured is None or measured < at - window else []
    missing += ["partner"] if size > 1 and (paired is None or paired < at - window) else []
    return Covered(node=node, machine=machine, measured=measured, with_partner=paired, missing=tuple(missing))


def _lemons(runs: Sequence[PastRun], here: dict[str, str]) -> Iterator[Lemon]:
    """Machines that failed in two runs or more, and those that came back after they had failed."""
    by_machine: dict[str, list[tuple[PastRun, Seen]]] = {}
    for run in runs:
        for seen in run.nodes:
            by_machine.setdefault(seen.machine, []).append((run, seen))
    for machine, found in sorted(by_machine.items()):
        failed = [(run, seen) for run, seen in found if seen.failed]
        back = bool(failed) and _came_back(machine, failed[0], found, runs)
        if len(failed) >= FAILS_TO_BE_A_LEMON or back:
            yield Lemon(
                machine=machine,
                names=tuple(dict.fromkeys(seen.name for _, seen in found)),
                here=next((name for name, one in here.items() if one == machine), None),
                failed_in=tuple(run.run_id for run, _ in failed),
                checks=tuple(dict.fromkeys(check for _, seen in failed for check in seen.failed)),
                seen_in=len(found),
                back=back,
            )


def _came_back(
    machine: str, failed: tuple[PastRun, Seen], found: list[tuple[PastRun, Seen]], runs: Sequence[PastRun]
) -> bool:  # fmt: skip
    """Whether a machine is seen again under another name, or after another machine had taken its name."""
    first, as_then = failed
    later = [(run, seen) for run, seen in found if run.started > first.started]
    if any(seen.name != as_then.name for _, seen in later):
        return True
    replaced = [
        run.started
        for run in runs
        for seen in run.nodes
        if run.started > first.started and seen.name == as_then.name and seen.machine != machine
    ]
    return bool(replaced) and any(run.started > min(replaced) for run, _ in later)


def pooled(runs: Sequence[PastRun]) -> Rates:
    """Failures and node-days of all runs together; records that stand in two of them count once."""
    contained = {run_id for run in runs for run_id in run.contains}
    own = [run for run in runs if run.run_id not in contained]
    failures, days = sum(run.failures for run in own), sum(run.node_days for run in own)
    if days <= 0:
        return Rates(failures=failures, node_days=0.0, low=None, high=None)
    return Rates(failures=failures, node_days=days, low=lower_rate(failures, days), high=upper_rate(failures, days))


def _series(runs: Sequence[PastRun]) -> Iterator[Series]:
    """Each metric that two runs or more have, with the params that most of them have."""
    for described in CATALOGUE:
        by_params: dict[object, list[tuple[PastRun, Middle]]] = {}
        for run in runs:
            for middle in run.middles:
                if middle.metric == described.name:
                    by_params.setdefault(params_key(middle.params), []).append((run, middle))
        longest = max(by_params.values(), key=lambda found: (len(found), str(found[0][1].params)), default=[])
        if len(longest) > 1:
            yield Series(
                metric=described.name,
                unit=described.unit,
                better=described.better,
                params=longest[0][1].params,
                points=tuple(
                    Point(run_id=run.run_id, time=run.started, value=middle.value, subjects=middle.subjects)
                    for run, middle in longest
                ),
            )
