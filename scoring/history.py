"""Many runs of a cluster over weeks: rolling coverage, machines that keep failing, failure rates, what was paid for.

A node is its hardware: what was measured of the machine that stood behind a name before tells nothing of the one there
now.
"""

import statistics
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Literal

from msgspec import Struct

from ..evidence import CATALOGUE, Params
from .history_changes import Change, changes_of
from .ledger import Ledger, ledger_of
from .lemons import Lemon, Sighting, lemons_of, sightings
from .past_runs import Middle, PastRun, Seen
from .statistics import lower_rate, upper_rate
from .values import params_key
from .verdict import VerdictWord

COVERAGE_DAYS = 7.0
MOST_VISITS = 60


class Visit(Struct, frozen=True, kw_only=True):
    """What a run found of a machine: it failed, was measured with a partner or alone, or was promised and not there."""

    run_id: str
    time: datetime
    found: Literal["failed", "partner", "alone", "absent"]


class Covered(Struct, frozen=True, kw_only=True):
    """A node of the cluster, by the machine behind its name now: when it was last measured, and with a partner.
    `visits` are the latest."""

    node: str
    machine: str
    measured: datetime | None
    with_partner: datetime | None
    missing: tuple[str, ...]  # what of the coverage is missing: "measured", "partner"
    visits: tuple[Visit, ...] = ()


class Point(Struct, frozen=True, kw_only=True):
    """The median of a metric over a run's subjects."""

    run_id: str
    time: datetime
    value: float
    subjects: int


class Series(Struct, frozen=True, kw_only=True):
    """A metric over weeks, with one set of params; of the whole cluster with one number of nodes."""

    metric: str
    unit: str
    better: str
    params: Params
    points: tuple[Point, ...]

    @property
    def worse_by(self) -> float | None:
        """By which share the last run is worse than the median of those before; below 0 where it is better. None where
        there is nothing above 0 to hold it against."""
        before, last = statistics.median(point.value for point in self.points[:-1]), self.points[-1].value
        if not before > 0:
            return None
        return last / before - 1 if self.better == "lower" else 1 - last / before


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
    changes: tuple[Change, ...]
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
    here, seen = machines_now(runs, nodes), sightings(runs)
    return ClusterHistory(
        cluster=name,
        runs=tuple(_line(run) for run in runs),
        coverage=tuple(
            _covered(node, machine, seen.get(machine, ()), at, at - window, len(here) > 1)
            for node, machine in here.items()
        ),
        lemons=tuple(lemons_of(runs, seen, here)),
        series=tuple(_series(runs)),
        changes=tuple(changes_of(runs)),
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
    name_of: dict[str, str] = {}
    for seen in (seen for run in runs for seen in run.nodes):
        former = name_of.get(seen.machine, seen.name)
        if former != seen.name and last.get(former) == seen.machine:
            del last[former]
        last[seen.name], name_of[seen.machine] = seen.machine, seen.name
    wanted = nodes or tuple(last)
    return {name: last.get(name, f"named {name}") for name in sorted(wanted)}


def _covered(  # noqa: PLR0917  # a node, and all that it is judged by
    node: str, machine: str, mine: Sequence[Sighting], at: datetime, since: datetime, others: bool
) -> Covered:
    """When the machine behind a name was last measured. Where the cluster has but one node there is no partner."""
    measured = max((min(run.ended, at) for run, seen in mine if seen.measured), default=None)
    paired = max((min(run.ended, at) for run, seen in mine if seen.partners), default=None)
    missing = ["measured"] if measured is None or measured < since else []
    missing += ["partner"] if others and (paired is None or paired < since) else []
    visits = tuple(_visit(run, seen) for run, seen in mine[-MOST_VISITS:])
    return Covered(
        node=node, machine=machine, measured=measured, with_partner=paired, missing=tuple(missing), visits=visits
    )


def _visit(run: PastRun, seen: Seen) -> Visit:
    if seen.failed:
        return Visit(run_id=run.run_id, time=run.started, found="failed")
    measured: Literal["partner", "alone"] = "partner" if seen.partners else "alone"
    return Visit(run_id=run.run_id, time=run.started, found=measured if seen.measured else "absent")


def pooled(runs: Sequence[PastRun]) -> Rates:
    """Failures and node-days of all runs together; records that stand in two of them count once."""
    contained = {run_id for run in runs for run_id in run.contains}
    own = [run for run in runs if run.run_id not in contained]
    failures, days = sum(run.failures for run in own), sum(run.node_days for run in own)
    if days <= 0:
        return Rates(failures=failures, node_days=0.0, low=None, high=None)
    return Rates(failures=failures, node_days=days, low=lower_rate(failures, days), high=upper_rate(failures, days))


def _series(runs: Sequence[PastRun]) -> Iterator[Series]:
    """Each metric that two runs or more have with the same params: those that the last run has, else the most have."""
    for described in CATALOGUE:
        by_params: dict[object, list[tuple[PastRun, Middle]]] = {}
        for run in runs:
            for middle in run.middles:
                if middle.metric == described.name:
                    by_params.setdefault(params_key(middle.params), []).append((run, middle))
        several = [found for found in by_params.values() if len(found) > 1]
        if several:
            longest = max(several, key=lambda found: (found[-1][0] is runs[-1], len(found), str(found[0][1].params)))
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
