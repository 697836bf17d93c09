"""What the sensors saw during one stretch of work, as readings of health.* and as things noticed.

Counters count by their difference between the first and the last mark, never as lifetime totals.
"""

import time
from collections.abc import Iterator

from msgspec import Struct

from ..evidence import AnyReading, Missing, Noticed, Reading, metric, reading
from ..evidence.records import Severity
from .files import Unreadable
from .gpu_sensors import GpuCounters
from .host_sensors import CpuTimes, foreign_cores, stolen_share
from .kernel_log import Xid
from .links import link_falls
from .nvml import THROTTLED, named_reasons
from .windows import Tallies, Tally

# Xids that a program causes by its own fault or by being killed, ours among them (NVIDIA's Xid catalogue): 13 and 31
# are bad accesses, 43 and 45 follow a stopped or killed process, 68 is the video processor's. All others, and those
# nobody knows, are the hardware's or the driver's until shown otherwise.
XIDS_OF_APPLICATIONS = frozenset({13, 31, 43, 45, 68})
_LATEST_S = 1.0  # a first mark later than this after the beginning has missed what came before it
_SHORTEST_S = 1.0
# quantity of a sample -> metric
_METRICS = {
    "temperature": "health.temperature",
    "power": "health.power",
    "clock": "health.clock",
    "throttled": "health.throttled",
}


class Marks(Struct, frozen=True, kw_only=True):
    """Counters at one moment. `cost_s` is the CPU time of the sampler's thread so far."""

    at: float
    cost_s: float
    cpu: CpuTimes | None
    gpus: dict[str, GpuCounters]
    links: dict[str, int]  # how often each NIC's link has gone down


class Watched:
    """What one stretch of work collects: its first and last marks, tallies of the samples under load, Xids with their
    subjects, trouble."""

    def __init__(self) -> None:
        self.begun = time.monotonic()
        self.first: Marks | None = None
        self.last: Marks | None = None
        self.tallies: Tallies = {}
        self.xids: list[tuple[str, Xid]] = []
        self.trouble = ""


def readings_of(node: str, watched: Watched, answered: bool) -> list[AnyReading]:
    """All that is to be said of the stretch. Sensors that did not answer in time say so and give no counters."""
    readings: list[AnyReading] = list(_sampled(watched.tallies))
    if watched.first and watched.last:
        late = watched.first is watched.last or watched.first.at - watched.begun > _LATEST_S
        readings += _counted(watched.first, watched.last, late)
        readings += _host(node, watched.first, watched.last)
        readings += _links(node, watched.first, watched.last)
    readings += [_xid(subject, xid) for subject, xid in watched.xids]
    if watched.trouble:
        readings.append(_note(node, f"the sensors failed: {watched.trouble}"))
    elif not answered:
        readings.append(_note(node, "the sensors did not answer within a second: what they count is not known"))
    return readings


def _note(node: str, detail: str) -> Noticed:
    return Noticed(kind="note", subject=node, severity="warning", detail=detail[:4000])


def _sampled(tallies: Tallies) -> Iterator[AnyReading]:
    for (subject, quantity), tally in tallies.items():
        if quantity in _METRICS:
            yield _as_reading(_METRICS[quantity], subject, quantity, tally)
        if quantity == "throttled" and tally.bits & THROTTLED:
            named = named_reasons(tally.bits & THROTTLED)
            share = f"{tally.mean:.0%} of {tally.count} readings"
            yield Noticed(kind="throttle", subject=subject, severity="warning", detail=f"{named} in {share}")


def _as_reading(name: str, subject: str, quantity: str, tally: Tally) -> Reading:
    """The samples themselves, or over a thousand of them the metric's statistic of all.

    Throttling is a share: its one value is the mean of the yes-or-no samples.
    """
    if quantity == "throttled":
        return reading(name, subject, tally.mean)
    if tally.complete:
        return reading(name, subject, tally.samples)
    folded = {"min": tally.minimum, "max": tally.maximum, "mean": tally.mean}
    return reading(name, subject, folded[metric(name).statistic])


def _counted(first: Marks, last: Marks, late: bool) -> Iterator[AnyReading]:
    for subject, after in last.gpus.items():
        before = None if late else first.gpus.get(subject)
        errors = _difference(before.ecc_uncorrected if before else Unreadable("not read when the work began"), after)
        yield _known("health.ecc_uncorrected", subject, errors)
        yield _known("health.remap_pending", subject, after.remap_pending)
        if isinstance(errors, int) and errors:
            detail = f"{errors} uncorrected memory errors during the work"
            yield Noticed(kind="ecc", subject=subject, severity="error", detail=detail)


def _difference(before: int | Unreadable, after: GpuCounters) -> int | Unreadable:
    """Errors counted between. A counter that went backwards was reset: what it had counted is lost."""
    now = after.ecc_uncorrected
    if isinstance(before, Unreadable) or isinstance(now, Unreadable):
        return now if isinstance(now, Unreadable) else before
    return now - before if now >= before else Unreadable(f"the counter was reset ({before} to {now})")


def _known(name: str, subject: str, value: int | bool | Unreadable) -> Reading | Missing:
    if isinstance(value, Unreadable):
        return Missing(metric=name, subject=subject, reason=value.reason, detail=value.why)
    return reading(name, subject, float(value))


def _host(node: str, first: Marks, last: Marks) -> Iterator[Reading]:
    wall_s = last.at - first.at
    if wall_s >= _SHORTEST_S:  # over less, the two looks at its ends are all there is
        yield reading("health.sensor_cost", node, (last.cost_s - first.cost_s) / wall_s)
    if first.cpu and last.cpu:
        shares = {
            "health.cpu_steal": stolen_share(first.cpu, last.cpu),
            "health.foreign_cpu": foreign_cores(first.cpu, last.cpu),
        }
        yield from (reading(name, node, share) for name, share in shares.items() if share is not None)


def _links(node: str, first: Marks, last: Marks) -> Iterator[Noticed]:
    for name, falls in link_falls(first.links, last.links).items():
        detail = f"the link went down {falls} times during the work"
        yield Noticed(kind="link_down", subject=f"{node}/{name}", severity="error", detail=detail)


def _xid(subject: str, xid: Xid) -> Noticed:
    detail = f"Xid {xid.code} on PCI {xid.pci}: {xid.text}"
    severity: Severity = "warning" if xid.code in XIDS_OF_APPLICATIONS else "error"
    return Noticed(kind="xid", subject=subject, severity=severity, detail=detail)
