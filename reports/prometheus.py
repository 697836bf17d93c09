"""A run as Prometheus text, for node_exporter's textfile collector: verdict, results by node, medians of metrics.

Format: https://prometheus.io/docs/instrumenting/exposition_formats/. The collector refuses samples that carry a time of
their own, so that the times of the run are gauges. What was not measured has no sample: absent, never 0.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import get_args

from ..evidence import Metric, Run, metric
from ..scoring.out_of_use import nodes_out
from ..scoring.verdict import EXIT_CODES, Category, Finding, Result, Verdict
from .exposition import Family, Labels, exposed, gauge, seconds
from .finding_evidence import nodes_of
from .measured import Group, Measured, params_label
from .plain_text import natural

_RESULTS: tuple[Result, ...] = get_args(Result)


def render(run: Run, verdict: Verdict) -> str:
    """The text; the same run gives the same bytes. A family without a sample is left out."""
    families = [*_of_verdict(run, verdict), *_of_nodes(run, verdict), *_of_metrics(Measured(run))]
    return exposed(families)


def _of_verdict(run: Run, verdict: Verdict) -> Iterator[Family]:
    header = run.header
    told = {
        "run_id": header.run_id,
        "provider": header.provider or "",
        "cluster": header.cluster or "",
        "profile": header.profile.name,
        "policy": verdict.policy.name,
        "simulated": str(header.simulated).lower(),
    }
    yield gauge("run_info", "Which run this is; always 1.", 1.0, *told.items())
    words = tuple(((("verdict", word),), float(word == verdict.verdict)) for word in EXIT_CODES)
    yield Family(name="hwlottery_verdict", help="1 for the run's verdict, 0 for the other three.", samples=words)
    yield gauge("signable", "1 where the verdict may be signed.", float(verdict.signable))
    yield gauge("index", "Weighted mean of shares of the reference, 0 to 100; absent unless all were measured.",
               verdict.index)  # fmt: skip
    yield gauge("required_values", "Values that the policy requires.", float(verdict.coverage.required))
    yield gauge("required_values_measured", "Of those, the ones measured.", float(verdict.coverage.measured))
    yield gauge("evidence_problems", "Defects of the record: lost, altered or unreadable parts.", len(run.problems))
    yield gauge("run_start_timestamp_seconds", "When the run began (UTC).", seconds(run.started))
    yield gauge("run_end_timestamp_seconds", "When the run's last event happened (UTC).", seconds(run.ended))
    counts = Counter((each.category, each.result) for each in verdict.findings)
    yield Family(
        name="hwlottery_results",
        help="Results of checks by category.",
        samples=tuple(
            ((("category", category), ("result", result)), float(counts[category, result]))
            for category in get_args(Category)
            for result in _RESULTS
        ),
    )


def _of_nodes(run: Run, verdict: Verdict) -> Iterator[Family]:
    nodes = sorted({node.node for node in run.header.promised}, key=natural)
    counts = Counter(_by_node(verdict.findings))
    yield Family(
        name="hwlottery_node_results",
        help="Results of checks on a node and what belongs to it, pairs with others included.",
        samples=tuple(
            ((("node", node), ("result", result)), float(counts[node, result])) for node in nodes for result in _RESULTS
        ),
    )
    out = nodes_out(verdict.exclude)
    yield Family(
        name="hwlottery_node_excluded",
        help="1 where the node is to be left out: by itself, for a device of it, or for a link.",
        samples=tuple(((("node", node),), float(node in out)) for node in nodes),
    )


def _by_node(findings: Iterable[Finding]) -> Iterator[tuple[str, Result]]:
    for each in findings:
        for node in nodes_of(each.subject):
            yield node, each.result


def _of_metrics(measured: Measured) -> Iterator[Family]:
    """Over all subjects, by params: a sample a GPU would be thousands of series, which `export csv` has."""
    for name in sorted(measured.metrics("")):
        groups = sorted(measured.groups(name), key=lambda group: params_label(group.params))
        yield Family(name=_name(name), help=_help(metric(name)), samples=tuple(_samples(groups)))


def _samples(groups: Iterable[Group]) -> Iterator[tuple[Labels, float]]:
    seen: set[str] = set()
    for group in groups:
        params = params_label(group.params) if group.params else ""
        if params in seen:  # params that read alike: a series may stand once
            continue
        seen.add(params)
        over = {"median": group.median, "least": min(group.numbers), "most": max(group.numbers)}
        yield from (((("params", params), ("over_subjects", word)), value) for word, value in over.items())
        yield (("params", params), ("over_subjects", "count")), float(len(group.values))


def _help(known: Metric) -> str:
    better = "" if known.better == "neither" else f", {known.better} is better"
    return f"{known.meaning} Unit: {known.unit or 'none'}{better}."


def _name(name: str) -> str:
    return "hwlottery_" + "".join(sign if sign.isascii() and sign.isalnum() else "_" for sign in name)
