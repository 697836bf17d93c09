"""The metric catalogue: every metric stands here once.

Probes, policies, references, readers and `hwlottery explain` refer to these by name. Names carry no parameters:
`matmul.tflops` with params {"m": 8192, "dtype": "bf16"}, not `gemm_bf16_8192`. A derived metric is declared here too
and computed in scoring: probes record TFLOPS and tokens/s, scoring divides by a reference.
"""

import statistics
from collections.abc import Callable, Sequence
from typing import Literal

from msgspec import Struct

from .possible import Possible, all_whole, possible_of
from .records import QUANTILES, Measurement
from .subjects import ACCELERATOR_KINDS, Kind

Better = Literal["higher", "lower", "neither"]
Statistic = Literal["median", "min", "max", "sum", "mean", "p95", "last"]

_BY_NAME: dict[Statistic, Callable[[Sequence[float]], float]] = {
    "median": statistics.median,
    "min": min,
    "max": max,
    "sum": sum,
    "mean": statistics.fmean,
    "last": lambda samples: samples[-1],
    "p95": lambda samples: sorted(samples)[max(0, -(-len(samples) * 95 // 100) - 1)],
}
# Where only quantiles are kept, the statistic is one of them. A sum or a last sample cannot be had: such metrics
# are recorded as one value.
_FROM_QUANTILES: dict[Statistic, int] = {
    "min": 0,
    "median": QUANTILES.index(0.5),
    "p95": QUANTILES.index(0.95),
    "max": len(QUANTILES) - 1,
}


class Metric(Struct, frozen=True, kw_only=True):
    """One metric: its unit, which direction is better, whom it is measured on, the statistic that makes its value
    from samples, and what samples are possible."""

    name: str
    unit: str
    better: Better
    subjects: tuple[Kind, ...]
    statistic: Statistic = "median"
    meaning: str
    derived: bool = False
    possible: Possible = Possible()


def _metric(  # noqa: PLR0917  # a table row: positions are its columns
    name: str,
    unit: str,
    better: Better,
    subjects: Kind | tuple[Kind, ...],
    statistic: Statistic,
    meaning: str,
) -> Metric:
    where = (subjects,) if isinstance(subjects, str) else subjects
    return Metric(
        name=name,
        unit=unit,
        better=better,
        subjects=where,
        statistic=statistic,
        meaning=meaning,
        derived=False,
        possible=possible_of(name, unit),
    )


def _derived(name: str, unit: str, better: Better, subjects: Kind | tuple[Kind, ...], meaning: str) -> Metric:
    where = (subjects,) if isinstance(subjects, str) else subjects
    possible = possible_of(name, unit)
    return Metric(
        name=name, unit=unit, better=better, subjects=where, meaning=meaning, derived=True, possible=possible
    )  # fmt: skip


_CHIP = ACCELERATOR_KINDS
_FS: tuple[Kind, ...] = ("filesystem",)
_GROUP: tuple[Kind, ...] = ("node", "pair", "rail", "domain", "cluster")
_MANY: tuple[Kind, ...] = ("domain", "cluster")

# fmt: off
CATALOGUE: tuple[Metric, ...] = (
    # matmul: reference/measurement 1.1
    _metric("matmul.tflops", "TFLOPS", "higher", _CHIP, "median",
            "Matrix product rate, 2mnk over the time of one product. params: dtype, m, n, k, phase (burst: cache "
            "flushed before each product; sustained: back to back, all accelerators of the node at once)."),
    _metric("matmul.mismatches", "elements", "lower", _CHIP, "max",
            "Elements that differ bitwise when the same product is computed again on the same device."),
    _metric("matmul.nonfinite", "elements", "lower", _CHIP, "max",
            "NaN or infinite elements in products of normally distributed finite matrices."),
    _derived("matmul.mfu", "share", "higher", _CHIP,
            "matmul.tflops over the accelerator's dense peak at that dtype."),
    _derived("matmul.spread", "share", "lower", "node", "(median - slowest) / median over the node's accelerators."),
    # memory: reference/measurement 1.2
    _metric("memory.copy", "GB/s", "higher", _CHIP, "median", "Device memory copy: bytes read plus bytes written."),
    _metric("memory.triad", "GB/s", "higher", _CHIP, "median",
            "Device memory a = b + s*c: three bytes moved for each."),
    _metric("memory.host_to_device", "GB/s", "higher", "gpu", "median",
            "Copy from pinned host memory to the device."),
    _metric("memory.device_to_host", "GB/s", "higher", "gpu", "median",
            "Copy from the device to pinned host memory."),
    _metric("memory.host_copy", "GB/s", "higher", "numa", "median",
            "Host DRAM copy by threads bound to one NUMA node: bytes read plus bytes written."),
    # collectives: reference/measurement 1.3
    _metric("all_reduce.busbw", "GB/s", "higher", _GROUP, "median",
            "All-reduce bus bandwidth: 2(n-1)/n x bytes over the slowest rank's time, an iteration a sample."),
    _metric("all_reduce.algbw", "GB/s", "higher", _GROUP, "median",
            "All-reduce algorithm bandwidth: bytes over the slowest rank's time, an iteration a sample."),
    _metric("all_reduce.transfer", "s", "lower", _GROUP, "median",
            "All-reduce transfer time: the fastest rank's time in each iteration, free of late arrival."),
    _metric("all_reduce.skew", "s", "lower", _GROUP, "median",
            "Arrival skew of an all-reduce: slowest minus fastest rank's time in each iteration."),
    _metric("all_reduce.batched_busbw", "GB/s", "higher", _GROUP, "median",
            "Bus bandwidth of back-to-back all-reduces, wall time over iterations: comparable with nccl-tests."),
    _metric("all_reduce.latency", "s", "lower", _GROUP, "median",
            "Time of an all-reduce of a message so small that only latency counts, slowest rank."),
    _metric("all_reduce.stalls", "stalls", "lower", _GROUP, "max",
            "Small all-reduces that took 0.1 s longer than the median one: a lost packet was sent again."),
    _metric("all_reduce.wrong_elements", "elements", "lower", _GROUP, "max",
            "Elements of the reduced buffer, over all ranks, that differ from the exact sum. Each element is "
            "checked."),
    _metric("all_reduce.nic_busbw", "GB/s", "higher", "node", "median",
            "Bus bandwidth of a ring all-reduce over a node's own accelerators with P2P, shared memory and NVLS "
            "switched off, so that its NICs carry every byte: screens a node's rails before it meets another."),
    _metric("all_reduce.nic_wrong_elements", "elements", "lower", "node", "max",
            "Elements that differ from the exact sum when a node's NICs carry its own all-reduce."),
    _metric("rail.busbw", "GB/s", "higher", "rail", "median",
            "All-reduce of rank k of one node with rank k of another: of two ranks bus bandwidth is the wire's, bytes "
            "over the slower rank's time. Attempt 1 may run beside other rails, later ones run alone."),
    _metric("rail.wrong_elements", "elements", "lower", "rail", "max",
            "Elements that differ from the exact sum on one rail of a pair."),
    _derived("rail.line_share", "share", "higher", "rail",
             "rail.busbw over the line rate of the NICs that one accelerator has to itself."),
    _metric("all_gather.busbw", "GB/s", "higher", _MANY, "median",
            "All-gather bus bandwidth: (n-1)/n x the bytes of all ranks together over the slowest rank's time."),
    _metric("all_gather.wrong_elements", "elements", "lower", _MANY, "max",
            "Gathered elements, over all ranks, that are not what their rank sent. Each element is checked."),
    _metric("reduce_scatter.busbw", "GB/s", "higher", _MANY, "median",
            "Reduce-scatter bus bandwidth: (n-1)/n x the bytes of a rank's input over the slowest rank's time."),
    _metric("reduce_scatter.wrong_elements", "elements", "lower", _MANY, "max",
            "Elements of reduce-scatter, over all ranks, that differ from the exact sum. Each element is checked."),
    _metric("all_to_all.busbw", "GB/s", "higher", _MANY, "median",
            "All-to-all bus bandwidth: (n-1)/n x the bytes that a rank sends over the slowest rank's time."),
    _metric("all_to_all.wrong_elements", "elements", "lower", _MANY, "max",
            "Exchanged elements, over all ranks, that are not what their sender sent. Each element is checked."),
    _derived("fabric.concurrency_kept", "share", "higher", "cluster",
             "Share of its lone bandwidth that a pair of nodes keeps when all pairs talk at once, the median over good "
             "pairs measured both ways: below 1 by more than a few percent the fabric is oversubscribed."),
    # checkpoint: reference/measurement 1.4
    _metric("checkpoint.save", "s", "lower", _FS, "median",
            "Whole save by torch.distributed.checkpoint: from the barrier to the last rank's fsync and the "
            "commit."),
    _metric("checkpoint.stage", "s", "lower", _FS, "median", "Part of a save: device to host copy, slowest rank."),
    _metric("checkpoint.write", "s", "lower", _FS, "median", "Part of a save: write calls, slowest rank."),
    _metric("checkpoint.sync", "s", "lower", _FS, "median", "Part of a save: fsync of the data files, slowest rank."),
    _metric("checkpoint.commit", "s", "lower", _FS, "median",
            "Part of a save: metadata written, synced and renamed, and the directory synced."),
    _metric("checkpoint.write_rate", "GB/s", "higher", _FS, "median", "Bytes of all ranks over the whole save time."),
    _metric("checkpoint.read_back", "s", "lower", _FS, "median", "Load of the whole checkpoint, slowest rank."),
    _metric("checkpoint.hash_mismatches", "tensors", "lower", _FS, "max",
            "Tensors whose hash after read-back differs from the hash before the save."),
    # retention: a checkpoint that an earlier run left behind
    _metric("retention.gone", "files", "lower", "cluster", "max",
            "Files of a checkpoint left by an earlier run that are not there any more. params: path, left (the date)."),
    _metric("retention.altered", "files", "lower", "cluster", "max",
            "Files of a checkpoint left by an earlier run whose size, time or SHA-256 is another."),
    _metric("retention.age", "s", "neither", "cluster", "last",
            "How long before this trial the checkpoint had been left."),
    # filesystem: reference/measurement 1.4, by fio
    _metric("filesystem.write_rate", "GB/s", "higher", _FS, "median",
            "fio, buffered 16 MiB sequential writes with a final fsync, all ranks' jobs together, fsync counted."),
    _metric("filesystem.direct_write_rate", "GB/s", "higher", _FS, "median",
            "fio, direct libaio writes 16 deep: the device's ceiling."),
    _metric("filesystem.read_rate", "GB/s", "higher", _FS, "median",
            "fio, direct sequential reads of what was written."),
    _metric("filesystem.write_p99", "s", "lower", _FS, "median", "fio, 99th percentile of one 16 MiB write call."),
    # topology of one node
    _metric("topology.pcie_width", "lanes", "higher", ("gpu", "nic"), "min", "PCIe lanes in use under load."),
    _metric("topology.pcie_gts", "GT/s", "higher", ("gpu", "nic"), "min", "PCIe transfer rate a lane under load."),
    _metric("topology.nvlinks_active", "links", "higher", "gpu", "min", "NVLinks up on this GPU."),
    # burn-in: reference/measurement 1.5
    _metric("burn_in.step", "s", "lower", _CHIP, "median", "Wall time of a training step on this rank."),
    _metric("burn_in.compute", "s", "lower", _CHIP, "median",
            "Forward and backward of a step on this rank, without waiting for others: shows stragglers."),
    _metric("burn_in.tokens_per_second", "tokens/s", "higher", "cluster", "median",
            "Tokens a second over all ranks."),
    _metric("burn_in.model_tflops", "TFLOPS", "higher", _CHIP, "median",
            "Model FLOPs a second and accelerator: 6(N - N_embed) + 12 L d S a token, nothing recomputed counted."),
    _metric("burn_in.loss_drop", "nats", "higher", "cluster", "last", "First loss minus last loss: training learns."),
    _metric("burn_in.nonfinite_losses", "steps", "lower", "cluster", "max", "Steps whose loss was NaN or infinite."),
    _metric("burn_in.hash_disagreements", "ranks", "lower", "cluster", "max",
            "Ranks whose parameter hash differs from the majority at any comparison: replicas must stay equal."),
    _metric("burn_in.checkpoint", "s", "lower", "cluster", "median", "Save of the burn-in's own checkpoint."),
    _derived("burn_in.mfu", "share", "higher", _CHIP, "burn_in.model_tflops over the accelerator's dense peak."),
    _derived("burn_in.straggler_loss", "share", "lower", "cluster",
            "1 - median over slowest of the ranks' median compute times."),
    # health beside running work
    _metric("health.throttled", "share", "lower", "gpu", "max",
            "Share of sensor readings under load with a hardware, thermal or power-brake slowdown."),
    _metric("health.ecc_uncorrected", "errors", "lower", "gpu", "max",
            "Uncorrected memory errors counted during our own load (a delta, never a lifetime total)."),
    _metric("health.remap_pending", "rows", "lower", "gpu", "max", "1 where a row remap is pending or has failed."),
    _metric("health.temperature", "C", "lower", ("gpu", "node"), "max", "Highest temperature under load."),
    _metric("health.power", "W", "neither", "gpu", "mean", "Mean board power under load."),
    _metric("health.clock", "MHz", "higher", ("gpu", "node"), "min", "Lowest SM (or CPU) clock under load."),
    _metric("health.cpu_steal", "share", "lower", "node", "mean", "CPU time taken by the hypervisor under load."),
    _metric("health.foreign_cpu", "cores", "lower", "node", "mean",
            "CPU cores busy with processes that are not ours under load."),
    _metric("health.sensor_cost", "share", "lower", "node", "max",
            "CPU seconds of the sensors over the wall time of the work beside which they ran."),
    # clocks of nodes
    _metric("clock.offset", "s", "neither", "node", "last",
            "How far a node's clock is ahead of the median of the head's and all nodes', by the quickest of several "
            "round trips; half of that trip is the fact clock.uncertainty."),
    # over the run
    _derived("reliability.failures_per_node_day", "1/node-day", "lower", "cluster",
            "Failures over node-days observed, with its exact Poisson upper bound."),
    _derived("goodput", "share", "higher", "cluster",
            "Share of time that makes progress, projected from measured checkpoint and recovery times (Daly)."),
)
# fmt: on

_METRICS = {metric.name: metric for metric in CATALOGUE}


def metric(name: str) -> Metric:
    """The metric of that name. Raises KeyError with one line that names the nearest ones."""
    if name in _METRICS:
        return _METRICS[name]
    import difflib

    near = difflib.get_close_matches(name, _METRICS, n=3)
    raise KeyError(f"unknown metric {name!r}" + (f", did you mean {', '.join(near)}?" if near else ""))


def is_metric(name: str) -> bool:
    """Whether the catalogue has a metric of that name."""
    return name in _METRICS


def impossible_in(measurement: Measurement) -> float | None:
    """The first number of a measurement that its metric cannot have, or None. Quantiles between whole numbers are
    interpolated: they need not be whole."""
    possible, numbers = metric(measurement.metric).possible, measurement.numbers()
    whole = possible.whole and measurement.quantiles is None
    if possible.within(min(numbers)) and possible.within(max(numbers)) and not (whole and not all_whole(numbers)):
        return None
    return next(number for number in numbers if not possible.within(number) or (whole and not all_whole((number,))))


def value_of(measurement: Measurement) -> float | None:
    """A measurement's value by its metric's statistic, in the metric's unit.

    None where the metric is unknown here or the statistic cannot be had from what was kept: not measured, never 0.
    """
    if measurement.metric not in _METRICS:
        return None
    if measurement.value is not None:
        return measurement.value
    statistic = _METRICS[measurement.metric].statistic
    if measurement.samples is not None:
        return value_of_samples(measurement.metric, measurement.samples)
    place = _FROM_QUANTILES.get(statistic)
    return None if place is None or measurement.quantiles is None else measurement.quantiles[place]


def median_of(ordered: Sequence[float]) -> float:
    """The median of samples in order, of which there is one at least."""
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def value_of_samples(name: str, samples: Sequence[float]) -> float | None:
    """The value that a metric's statistic makes of samples, in its unit; None of none, or of an unknown metric."""
    return _BY_NAME[_METRICS[name].statistic](samples) if samples and name in _METRICS else None
