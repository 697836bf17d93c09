"""The page of a folder of runs: coverage, machines that keep failing, metrics over weeks, what was paid for.

It runs no script at all.
"""

from collections.abc import Iterator, Sequence

from markupsafe import Markup
from msgspec import Struct

from ..scoring.history import ClusterHistory, History, Series
from ..scoring.history_changes import Change
from ..scoring.words import counted
from .history_charts import drawn, ledger_chart, metric_charts, rate_chart, worsened
from .history_coverage import coverage_chart
from .history_tables import (
    changes_table,
    coverage_table,
    ledger_table,
    lemons_table,
    runs_table,
    series_table,
    skipped_table,
)
from .history_words import answer, lemon, rates
from .layout import Chart, Table
from .numbers import dollars, percent, significant, span, utc
from .page import asset, content_policy, environment
from .plain_text import listed, printable

MOST_CLUSTERS = 20


class Figure(Struct, frozen=True, kw_only=True):
    """A figure of the first screen; `tone`: fail or none."""

    title: str
    value: str
    note: str
    tone: str = ""


class Told(Struct, frozen=True, kw_only=True):
    """One cluster, as the page tells it."""

    name: str
    span: str
    figures: tuple[Figure, ...]
    coverage: tuple[Chart, Table]
    lemons: tuple[str, Table | None]
    metrics: tuple[str, tuple[Chart, ...], Table | None, Table | None]
    rates: tuple[str, Chart | None]
    ledger: tuple[str, Chart | None, Table]
    runs: Table


def render_history(history: History, version: str) -> str:
    """The whole page. It makes no request, runs nothing, and escapes whatever the runs hold."""
    style = asset("page.css") + asset("history.css")
    return (
        environment(("history.html.j2", "parts.html.j2"))
        .get_template("history.html.j2")
        .render(
            headline=answer(history),
            bad=history.exit_code != 0,
            clusters=[told(one, history) for one in history.clusters[:MOST_CLUSTERS]],
            left_out=max(0, len(history.clusters) - MOST_CLUSTERS),
            skipped=skipped_table(history),
            runs=sum(len(one.runs) for one in history.clusters),
            at=utc(history.at),
            days=f"{history.days:g}",
            version=version,
            style=Markup(style),  # noqa: S704  # our own files
            policy=content_policy(style),
        )
    )


def told(cluster: ClusterHistory, history: History) -> Told:
    """What the page tells of a cluster."""
    first, last = cluster.runs[0], cluster.runs[-1]
    return Told(
        name=cluster.cluster,
        span=f"{counted(len(cluster.runs), 'run')}, {utc(first.started)} to {utc(last.started)}",
        figures=tuple(_figures(cluster, history)),
        coverage=(coverage_chart(cluster, history), coverage_table(cluster)),
        lemons=(_lemons_answer(cluster), lemons_table(cluster)),
        metrics=_metrics(cluster),
        rates=(rates(cluster.rates), rate_chart(cluster)),
        ledger=("", ledger_chart(cluster.ledger), ledger_table(cluster.ledger)),
        runs=runs_table(cluster),
    )


def _figures(cluster: ClusterHistory, history: History) -> Iterator[Figure]:
    gaps, nodes = cluster.uncovered, len(cluster.coverage)
    note = listed([printable(one.node, 40) for one in gaps], 3) if gaps else "each with a partner where there is one"
    yield Figure(
        title=f"Covered within {history.days:g} days", value=f"{nodes - len(gaps):,} of {nodes:,} nodes",
        note=f"not: {note}" if gaps else note, tone="fail" if gaps else "",
    )  # fmt: skip
    here = [printable(one.here, 40) for one in cluster.lemons if one.here is not None]
    gone = len(cluster.lemons) - len(here)
    yield Figure(
        title="Machines that keep failing", value=f"{len(here)} still here" if here else "none here",
        note="; ".join(part for part in (listed(here, 3), f"{gone} gone" if gone else "") if part)
        or f"in {counted(len(cluster.runs), 'run')}",
        tone="fail" if here else "",
    )  # fmt: skip
    yield _rate_figure(cluster)
    yield _ledger_figure(cluster)


def _rate_figure(cluster: ClusterHistory) -> Figure:
    found, title = cluster.rates, "Failures, a node-day"
    if found.high is None:
        return Figure(title=title, value="not known", note="no node-days were observed")
    seen = f"{found.failures:,} in {significant(found.node_days)} node-days; each bound at 95 %"
    return Figure(title=title, value=span(found.low or None, found.high), note=seen)


def _ledger_figure(cluster: ClusterHistory) -> Figure:
    found, title = cluster.ledger, "Of what was paid for, healthy"
    if not found.paid > 0:
        return Figure(title=title, value="not known", note="no time has passed since the first run")
    money = "no price given"
    if found.usd is not None and found.usd_unhealthy is not None:
        money = f"{dollars(found.usd)}, of which {dollars(found.usd_unhealthy)} for nodes that were not"
    return Figure(title=title, value=percent(found.healthy / found.paid), note=f"{found.paid:,.0f} node-hours; {money}")


def _lemons_answer(cluster: ClusterHistory) -> str:
    if not cluster.lemons:
        return "No machine failed a required check in two runs or more, and none came back after it had failed."
    worst = max(cluster.lemons, key=lambda one: (one.here is not None, len(one.failed_in)))
    return f"{lemon(worst)}."


def _metrics(cluster: ClusterHistory) -> tuple[str, tuple[Chart, ...], Table | None, Table | None]:
    """The answer, the charts of those that moved, all of them, and what else changed."""
    shown = sorted(cluster.series, key=lambda one: (-(one.worse_by or 0.0), one.metric))
    changes, charted = _newest(cluster.changes), drawn(cluster.series)
    marks = {run_id: number for number, run_id in enumerate(dict.fromkeys(one.run_id for one in changes), 1)}
    charts = metric_charts(cluster, charted, marks) if charted else ()
    everything = series_table(shown) if shown else None
    return _metrics_answer(shown), charts, everything, changes_table(changes, marks)


def _newest(changes: Sequence[Change], most: int = 60) -> Sequence[Change]:
    return changes[-most:]


def _metrics_answer(shown: Sequence[Series]) -> str:
    if not shown:
        return "No metric was measured in two runs."
    worse, of = sum(worsened(one) for one in shown), counted(len(shown), "metric")
    if not worse:
        return f"None of {of} is worse in its last run than before by 5 % or more."
    return f"{worse} of {of} {'is' if worse == 1 else 'are'} worse in the last run than before by 5 % or more."
