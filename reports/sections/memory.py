"""Memory: bandwidth of device memory, of the way to the host, and of host memory."""

from ...scoring.verdict import Verdict
from ..layout import Section
from ..measured import Group, Measured
from ..numbers import figure
from ..spread import noun
from ..tables import aggregates, gaps, worst
from .judged import failing, judged_chart, not_measured

_LEADING = ("memory.copy", "memory.triad", "memory.host_copy", "memory.host_to_device", "memory.device_to_host")
_WAYS = {
    "memory.copy": "device memory copies at {}",
    "memory.triad": "the triad runs at {}",
    "memory.host_to_device": "the way to the device carries {}",
    "memory.device_to_host": "the way back {}",
    "memory.host_copy": "host memory copies at {} a NUMA node",
}


def memory(measured: Measured, verdict: Verdict) -> Section:
    """The section on memory bandwidth."""
    present = [group for name in _LEADING if (group := measured.main(name))]
    main = present[0] if present else None
    tables = [aggregates(measured, measured.metrics("memory."))]
    if main and len(main.values) > 1:
        tables.append(worst(main, marked=failing(verdict, main.metric.name)))
    return Section(
        anchor="memory",
        title="Memory",
        answer=_answer(present) if present else not_measured(measured, "memory."),
        chart=judged_chart(measured, verdict, main) if main else None,
        tables=tuple(table for table in tables if table),
        gaps=gaps(measured.missing("memory.")),
        method=(
            "Copy moves two bytes for each byte of the buffer, triad three; buffers are far larger than the caches.",
            "Host copies use pinned memory; host memory is copied by threads bound to one NUMA node.",
            "The value is the median of the samples, in decimal GB/s.",
        ),
        source=("nvbandwidth", "https://github.com/NVIDIA/nvbandwidth"),
        cannot_tell="Whether several devices share a PCIe switch: that shows only with all copies at once.",
    )


def _answer(present: list[Group]) -> str:
    parts = [_WAYS[group.metric.name].format(figure(group.median, group.metric.unit)) for group in present]
    told = ", ".join(parts)
    one = len(present[0].values) == 1
    where = present[0].values[0].subject if one else f"the median {noun(present[0])}"
    return f"On {where}, {told}."
