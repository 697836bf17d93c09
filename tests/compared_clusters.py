"""Clusters and their runs as figures alone, from a seed: how often a comparison tells apart what is the same, and finds
what differs. Also the same effects laid upon the records of a generated run, for comparisons through files.

The model of a figure: typical x cluster x node x device x run x noise, each factor log-normal.

- From device to device 1.5 % in products and training: 5 % and more below the median is seen on healthy nodes
  (stas00/ml-engineering), which is three deviations and more of eight devices' usual 1 to 2 %. Across the GPUs of whole
  systems 8 % was found (Sinha et al., SC22). Memory 0.2 %; links to the host 0.1 %: eight within 0.10 of 55.4 GB/s.
- From node to node 0.7 % in products and training, 0.3 % in links and memory, 1 % in the fabric, 3 % in storage.
- From run to run what references/between_runs.yaml states, of products and training two thirds of it together: the same
  air and the same supply. `wilder` multiplies it, to see what happens where the default is wrong.
- From sample to sample 0.4 % (storage 5 %), as many samples as the profile acceptance takes.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from generated_runs import as_run, make_run, write_records

from hwlottery.evidence import AnyRecord, Fact, Measurement, Run, RunHeader, metric, parse_subject
from hwlottery.references import run_spreads
from hwlottery.scoring.comparison_figures import COMPARED, Compared, Figure, spread_figure
from hwlottery.scoring.comparison_intervals import Apart, Between, apart, between_runs
from hwlottery.scoring.comparison_sides import EVERYTHING

TOGETHER = 2 / 3  # of the variance of clocks from run to run
_BY_CATEGORY = {  # device, node, sample
    "training": (0.015, 0.007, 0.004),
    "compute": (0.015, 0.007, 0.004),
    "memory": (0.002, 0.003, 0.004),
    "fabric": (0.0, 0.010, 0.004),
    "storage": (0.0, 0.030, 0.050),
}
SAMPLES = {"training": 1000, "compute": 100, "memory": 50, "fabric": 50, "storage": 20}  # the profile acceptance
Slower = Mapping[str, float]  # by the key of a figure: at which share of its speed it runs


@dataclass(kw_only=True)
class Cluster:
    """One cluster: the effects that stay from run to run."""

    seed: int
    nodes: int = 16
    devices: int = 8
    wilder: float = 1.0
    _kept: dict[str, np.ndarray] = field(default_factory=dict)

    def lasting(self, what: Compared) -> np.ndarray:
        """Logarithms of node and device effects, nodes x devices."""
        if what.key not in self._kept:
            device, node, _ = _BY_CATEGORY[what.category]
            source = np.random.default_rng([self.seed, EVERYTHING.index(what)])
            nodes = node * source.standard_normal((self.nodes, 1))
            self._kept[what.key] = nodes + device * source.standard_normal((self.nodes, self.devices))
        return self._kept[what.key]

    def figures(self, run: int, slower: Slower | None = None) -> dict[str, Figure]:
        """One run's figures. Money and useful throughput go with training."""
        source = np.random.default_rng([self.seed, 1_000_000 + run])
        air = float(source.standard_normal())
        found = {what.key: self._figure(what, source, air, (slower or {}).get(what.key, 1.0)) for what in COMPARED}
        return {"money": found["training"], "useful": found["training"], **found}

    def _figure(self, what: Compared, source: np.random.Generator, air: float, share: float) -> Figure:
        _, _, sample = _BY_CATEGORY[what.category]
        each = what.each != "accelerator"
        logs = self.lasting(what)[:, :1] if each else self.lasting(what)
        if what.each == "cluster":
            logs = logs[:1]
        noise = sample * math.sqrt(math.pi / 2 / SAMPLES[what.category])
        logs = logs + noise * source.standard_normal(logs.shape) + self.run_effect(what, source, air) + math.log(share)
        return spread_figure({f"n{row}": np.exp(values).tolist() for row, values in enumerate(logs)})

    def run_effect(self, what: Compared, source: np.random.Generator, air: float) -> float:
        """The logarithm of what a whole run has in common."""
        common = air if what.category in ("compute", "training") else float(source.standard_normal())
        own = float(source.standard_normal())
        return default_spread(what) * self.wilder * (math.sqrt(TOGETHER) * common + math.sqrt(1 - TOGETHER) * own)


def default_spread(what: Compared) -> float:
    """From run to run, as a comparison takes it."""
    return run_spreads().of(what.metric, what.each).spread


def told_apart(
    one: Mapping[str, Figure], other: Mapping[str, Figure], history: Sequence[Sequence[Mapping[str, Figure]]] = ()
) -> dict[str, Apart]:
    """The figures in which two runs are told apart, by the rule that a comparison of two runs uses. `history` are
    further runs, a list a cluster."""
    found = {
        what.key: apart(one[what.key], other[what.key], _between(what, history), len(EVERYTHING))
        for what in EVERYTHING
    }  # fmt: skip
    return {key: each for key, each in found.items() if each.told_apart}


def _between(what: Compared, history: Sequence[Sequence[Mapping[str, Figure]]]) -> Between:
    logs = [[math.log(run[what.key].value) for run in runs] for runs in history]
    spreads = run_spreads()
    return between_runs(default_spread(_as_measured(what)), spreads.weight, logs)


def _as_measured(what: Compared) -> Compared:
    """Money and useful throughput have the variance of training."""
    return next(each for each in COMPARED if each.key == "training") if what not in COMPARED else what


def false_claims(seeds: Iterable[int], *, nodes: int = 16, wilder: float = 1.0, repeats: int = 0) -> list[set[str]]:
    """For each seed the figures in which two runs of one cluster are told apart; `repeats` further runs are history."""
    found = []
    for seed in seeds:
        cluster = Cluster(seed=seed, nodes=nodes, wilder=wilder)
        history = [[cluster.figures(2 + place) for place in range(repeats)]] if repeats else []
        found.append(set(told_apart(cluster.figures(0), cluster.figures(1), history)))
    return found


def found_slower(seeds: Iterable[int], slower: Slower, *, nodes: int = 16) -> list[set[str]]:
    """For each seed the figures in which a second cluster, slower by so much, is rightly told apart from a first."""
    found = []
    for seed in seeds:
        one, other = Cluster(seed=2 * seed, nodes=nodes), Cluster(seed=2 * seed + 1, nodes=nodes)
        apart_by = told_apart(one.figures(0), other.figures(0, slower))
        found.append({key for key, each in apart_by.items() if slower.get(key, 1.0) < 1 and each.ratio > 1})
    return found


def whole_cluster(share: float) -> dict[str, float]:
    """Everything at that share of its speed."""
    return {what.key: share for what in EVERYTHING}


# --- the same through records ----------------------------------------------------------------------------------------


def compared_run(cluster: Cluster, run: int = 0, **wanted: Any) -> Run:
    """A run of a cluster, in memory: see `records_of`."""
    return as_run(*records_of(cluster, run, **wanted))


def written_run(place: Path, cluster: Cluster, run: int = 0, **wanted: Any) -> Path:
    """A run of a cluster as a directory: see `records_of`."""
    return write_records(place, *records_of(cluster, run, **wanted))


def records_of(
    cluster: Cluster,
    run: int = 0,
    *,
    slower: Slower | None = None,
    header: Mapping[str, object] | None = None,
    facts: Mapping[str, str] | None = None,
    **wanted: Any,
) -> tuple[RunHeader, list[AnyRecord]]:
    """Header and records; `header` and `facts` put other values in their place, the rest is that of `make_run`."""
    made, records = make_run(
        nodes=cluster.nodes, accelerators=cluster.devices, seed=1000 * cluster.seed + run, **wanted
    )  # fmt: skip
    named = {"run_id": f"run-{cluster.seed}-{run}", "provider": f"Provider {cluster.seed}", "cluster": "fra-2"}
    records = with_effects(records, cluster, run, slower)
    for place, record in enumerate(records):
        if isinstance(record, Fact) and record.key in (facts or {}):
            records[place] = msgspec.structs.replace(record, value=(facts or {})[record.key])
    return msgspec.structs.replace(made, **{**named, **(header or {})}), records


def with_effects(
    records: Iterable[AnyRecord], cluster: Cluster, run: int, slower: Slower | None = None
) -> list[AnyRecord]:
    """The records of a generated run, whose samples have no effects but noise, with those of a cluster and a run; and
    with the hardware of that cluster."""
    source = np.random.default_rng([cluster.seed, 1_000_000 + run])
    air = float(source.standard_normal())
    runs = {what.key: cluster.run_effect(what, source, air) for what in COMPARED}
    return [_with_effect(record, cluster, runs, slower or {}) for record in records]


def _with_effect(record: AnyRecord, cluster: Cluster, runs: Mapping[str, float], slower: Slower) -> AnyRecord:
    if isinstance(record, Fact) and record.key in ("hardware.identity", "accelerator.uuid"):
        return msgspec.structs.replace(record, value=f"{record.value}-{cluster.seed}")
    if not isinstance(record, Measurement) or record.samples is None:
        return record
    kind = parse_subject(record.subject).kind
    what = next((each for each in COMPARED if each.metric == record.metric and _is_of(each, kind)), None)
    if what is None:
        return record
    log = runs[what.key] + _lasting(cluster, what, record.subject) + math.log(slower.get(what.key, 1.0))
    factor = math.exp(-log if metric(record.metric).better == "lower" else log)
    return msgspec.structs.replace(record, samples=tuple(sample * factor for sample in record.samples))


def _is_of(what: Compared, kind: str) -> bool:
    return kind in ("gpu", "slot") if what.each == "accelerator" else kind == what.each


def _lasting(cluster: Cluster, what: Compared, subject: str) -> float:
    """The effect of a subject's node and device; of a pair half of each node's."""
    taken = parse_subject(subject)
    rows = [int(node[1:]) for node in taken.nodes] or [0]
    column = int(subject.rpartition("/")[2].lstrip("gpuslot")) if taken.kind in ("gpu", "slot") else 0
    effects = cluster.lasting(what)
    return float(np.mean([effects[row, column] for row in rows]))
