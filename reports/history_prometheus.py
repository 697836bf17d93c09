"""A history as Prometheus text: coverage, machines that keep failing, failure rates, and what was paid for.

Its families have names of their own, for the file lies beside that of the last run. What is not known has no sample.
"""

from collections.abc import Callable, Iterable, Iterator

from ..scoring.history import ClusterHistory, Covered, History
from .exposition import Family, Labels, exposed, gauge, seconds
from .plain_text import printable

_Named = tuple[str, ClusterHistory]
_Samples = Iterable[tuple[Labels, float | None]]


def render(history: History) -> str:
    """The text; the same history gives the same bytes."""
    clusters = list(_told_apart(history))
    return exposed([*_of_all(history), *_of_clusters(clusters), *_of_nodes(clusters), *_of_money(clusters)])


def _told_apart(history: History) -> Iterator[_Named]:
    """Each cluster by a name that no other has once it is printed: a series may stand once."""
    seen: set[str] = set()
    for number, cluster in enumerate(history.clusters):
        name = printable(cluster.cluster, 200)
        name = name if name not in seen else f"{name} #{number}"
        seen.add(name)
        yield name, cluster


def _of_all(history: History) -> Iterator[Family]:
    yield gauge("history_judged_timestamp_seconds", "As of when the history was judged (UTC).", seconds(history.at))
    yield gauge("history_days", "Within how many days a node must have been measured.", history.days)
    answer = float(history.exit_code)
    yield gauge("history_exit_code", "0 covered, 3 a machine keeps failing, 4 not covered, or no run was read.", answer)
    yield gauge("history_skipped", "Folders that could not be read as a run.", float(len(history.skipped)))


def _of_clusters(clusters: list[_Named]) -> Iterator[Family]:
    def each(name: str, words: str, of: Callable[[ClusterHistory], float | None]) -> Family:
        return _family(name, words, (((("cluster", label),), of(one)) for label, one in clusters))

    yield each("runs", "Runs that were read.", lambda one: len(one.runs))
    yield each(
        "last_run_timestamp_seconds", "When the last run began (UTC).", lambda one: seconds(one.runs[-1].started)
    )
    yield each("nodes", "Nodes of the cluster.", lambda one: len(one.coverage))
    yield each("nodes_not_covered", "Nodes whose coverage lacks something.", lambda one: len(one.uncovered))
    here = "Machines that keep failing and are still here."
    yield each("machines_failing_here", here, lambda one: sum(lemon.here is not None for lemon in one.lemons))
    yield each("failures", "Failures of all runs together.", lambda one: one.rates.failures)
    yield each("node_days", "Node-days that were observed.", lambda one: one.rates.node_days)
    yield each("failures_per_node_day_low", "Lower bound, exact Poisson at 95%.", lambda one: one.rates.low)
    yield each("failures_per_node_day_high", "Upper bound, exact Poisson at 95%.", lambda one: one.rates.high)


def _of_nodes(clusters: list[_Named]) -> Iterator[Family]:
    def each(name: str, words: str, of: Callable[[Covered], float | None]) -> Family:
        samples = (
            ((("cluster", label), ("node", row.node)), of(row)) for label, one in clusters for row in one.coverage
        )
        return _family(name, words, samples)

    yield each("node_covered", "1 where its coverage lacks nothing.", lambda row: float(not row.missing))
    measured = "When the machine behind the name was last measured (UTC); absent if never."
    yield each("node_measured_timestamp_seconds", measured, lambda row: seconds(row.measured))
    paired = "When it was last measured with a partner (UTC); absent if never."
    yield each("node_partner_timestamp_seconds", paired, lambda row: seconds(row.with_partner))
    failing = (
        ((("cluster", label), ("node", lemon.here or ""), ("machine", lemon.machine)), float(len(lemon.failed_in)))
        for label, one in clusters
        for lemon in one.lemons
    )
    yield _family("machine_failed_runs", "Runs in which a machine that keeps failing failed; no node: gone.", failing)


def _of_money(clusters: list[_Named]) -> Iterator[Family]:
    hours = (
        ((("cluster", label), ("state", state)), value)
        for label, one in clusters
        for state, value in (
            ("paid", one.ledger.paid), ("delivered", one.ledger.delivered), ("healthy", one.ledger.healthy)
        )
    )  # fmt: skip
    yield _family("node_hours", "Node-hours since the first run: paid, delivered, healthy.", hours)
    money = (
        ((("cluster", label), ("state", state)), value)
        for label, one in clusters
        for state, value in (("paid", one.ledger.usd), ("not_healthy", one.ledger.usd_unhealthy))
    )
    yield _family("usd", "USD since the first run: paid, and of it for nodes that were not healthy.", money)


def _family(name: str, words: str, samples: _Samples) -> Family:
    """Without samples that are not known, and without a series that reads as one before it."""
    found: dict[tuple[tuple[str, str], ...], float] = {}
    for labels, value in samples:
        if value is not None:
            found.setdefault(tuple((key, printable(text, 200)) for key, text in labels), float(value))
    return Family(name=f"hwlottery_history_{name}", help=words, samples=tuple(found.items()))
