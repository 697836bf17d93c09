"""An earlier run beside this one: which of its values to hold a value against, and what else has changed since.

A node is its hardware: it is looked for by its identity, and by its name only where that is not known.
"""

import math
from collections import Counter
from collections.abc import Mapping

from msgspec import Struct

from ..evidence import Metric, Params, RunHeader
from ..references import run_spreads
from .derived import Figures
from .facts import Facts
from .scope import Target
from .statistics import TWO_SIDED, error_of_median
from .values import Value
from .verdict import BaselineName
from .words import figure, several

# What of a node or an accelerator may make it faster or slower, among the facts that inventory recorded.
# fmt: off
SETTINGS = (
    "accelerator.clock_memory_max", "accelerator.clock_sm_application", "accelerator.clock_sm_max",
    "accelerator.compute_mode", "accelerator.ecc", "accelerator.mig", "accelerator.nvlinks",
    "accelerator.pcie_generation_max", "accelerator.pcie_width_max", "accelerator.persistence",
    "accelerator.power_limit", "accelerator.vbios",
    "cpu.allowed", "cpu.cgroup_limit", "cpu.governor", "cpu.microcode", "cpu.model", "cpu.smt", "cpu.threads",
    "iommu.active", "limit.memlock", "limit.nofile", "machine.bios_version", "memory.transparent_huge_pages",
    "nic.firmware", "nic.mtu", "nic.speed", "numa.balancing", "numa.nodes",
)
# fmt: on
MOST_SUSPECTS = 4


class Before(Struct, frozen=True, kw_only=True):
    """What the earlier run has of a value, or why there is none to compare with, and what has changed since. `spread`
    is one standard deviation from run to run, as a share."""

    value: Value | None = None
    spread: float = 0.0
    why_none: str = ""
    suspects: tuple[str, ...] = ()


class Against(Struct, frozen=True, kw_only=True):
    """A share of the earlier value, above 1 where it is better. `error` is its standard error, as a share, by both
    values' samples, of which `samples` are behind the lesser; `between` is what differs from run to run."""

    share: float
    error: float
    between: float
    samples: int

    @property
    def margin(self) -> float:
        """Half the width of its 95% interval, as a share."""
        return TWO_SIDED * math.hypot(self.error, self.between)

    @property
    def low(self) -> float:
        """The lower end of its 95% interval, which is symmetric on a log scale."""
        return self.share * math.exp(-self.margin)

    @property
    def high(self) -> float:
        """The upper end of its 95% interval."""
        return self.share * math.exp(self.margin)

    @property
    def worse(self) -> bool:
        """Whether it is worse by more than noise."""
        return self.high < 1

    def hides(self, least: float) -> bool:
        """Whether a fall to that share would not show; one far beyond it does."""
        return self.margin > 1 - least and not self.share * (1 + self.margin) < least

    def samples_to_see(self, change: float) -> int | None:
        """How many samples like these would show a change by that share; None where none would, for runs differ."""
        room = (change / TWO_SIDED) ** 2 - self.between**2
        return math.ceil(self.samples * self.error**2 / room) if room > 0 else None


class BaselineFigures:
    """The figures of an earlier run, found for the subjects of this one."""

    def __init__(self, now: Figures, before: Figures) -> None:
        self.now = now
        self.before = before
        self._hardware = hardware_of(now.header, now.facts)
        self._hardware_before = hardware_of(before.header, before.facts)
        self.counterparts = counterparts(now.header, self._hardware, before.header, self._hardware_before)
        self._software, self._software_before = software_of(now.header), software_of(before.header)
        self._suspects: dict[str, tuple[str, ...]] = {}

    @property
    def same_nodes(self) -> bool:
        """Whether both runs are of the same nodes: else figures of the whole cluster are of unlike clusters."""
        everybody = {node.node for node in self.before.header.promised}
        return len(self.counterparts) == len(self.now.header.promised) and set(self.counterparts.values()) == everybody

    @property
    def name(self) -> BaselineName:
        """Which run it is, and what has changed since of everything that takes part."""
        header = self.before.header
        changes = dict.fromkeys(change for node in self.counterparts for change in self._of_node(node))
        missing = [node.node for node in self.now.header.promised if node.node not in self.counterparts]
        new = [f"the baseline has not seen {several(missing, 6)}"] if missing else []
        absent = [node.node for node in header.promised if node.node not in set(self.counterparts.values())]
        new += [f"of the baseline's {len(header.promised)} nodes {several(absent, 6)} took no part"] if absent else []
        return BaselineName(
            run_id=header.run_id,
            started=header.segments[0].start if header.segments else None,
            changes=(*changes, *new),
        )

    def of(self, described: Metric, target: Target, value: Value) -> Before:
        """What the earlier run measured of the same metric, of the same hardware, with the same params."""
        found = self.value_of(described, target, value.params)
        suspects = self.suspects(target)
        if found is None:
            return Before(why_none="the baseline has no value for this", suspects=suspects)
        other = self._other_method(value, found)
        if other:
            return Before(why_none=other, suspects=suspects)
        spread = run_spreads().of_one_subject(described.name, self.now.header.device)
        return Before(value=found, spread=spread, suspects=suspects)

    def value_of(self, described: Metric, target: Target, params: Params) -> Value | None:
        """The earlier run's value of the same hardware with the same params; None where it has none."""
        places = [self._place(subject) for subject in (target.subject, target.also) if subject]
        found = (one for place in places if place for one in self.before.of(described.name, place))
        return next((one for one in found if one.params == params and one.value is not None), None)

    def _other_method(self, value: Value, before: Value) -> str:
        """In words that the two were measured by unlike methods; empty where they were not."""
        now, then = _method(self.now, value), _method(self.before, before)
        if now == then or None in (now, then):
            return ""
        return f"the baseline measured it by another method ({' '.join(then or ())}, now {' '.join(now or ())})"

    def _place(self, subject: str) -> str | None:
        """How the earlier run writes the same hardware; None where it did not see it."""
        head, slash, rest = subject.partition("/")
        if subject == "cluster" or head.startswith(("fs:", "domain:")):
            return subject
        nodes = [self.counterparts.get(node) for node in head.split("~")]
        if None in nodes:
            return None
        before = "~".join(node for node in nodes if node)
        return self._same_device(subject, before) or f"{before}{slash}{rest}"

    def _same_device(self, subject: str, node: str) -> str | None:
        """The accelerator with the same UUID, where it has another number now."""
        uuid = self.now.facts.get(subject, "accelerator.uuid")
        found = self.before.node(node)
        if uuid is None or found is None:
            return None
        places = (f"{node}/{rank}" for rank in found.ranks)
        return next((p for p in places if self.before.facts.get(p, "accelerator.uuid") == uuid), None)

    def suspects(self, target: Target) -> tuple[str, ...]:
        """What else changed of the nodes behind a subject, in a few words each."""
        if target.subject not in self._suspects:
            changes = [change for node in target.nodes for change in self._of_node(node)]
            changes += self._of_device(target.subject)
            self._suspects[target.subject] = tuple(dict.fromkeys(changes))
        return self._suspects[target.subject]

    def _of_node(self, node: str) -> list[str]:
        """Its hardware, its software and its settings, as far as both runs know them."""
        before = self.counterparts.get(node)
        if before is None:
            return []
        ours, theirs = self._hardware.get(node), self._hardware_before.get(before)
        told = [f"the hardware behind {node} changed"] if ours and theirs and ours != theirs else []
        told += [f"{node} was {before}"] if before != node else []
        told += _changed(self._software_before.get(before, {}), self._software.get(node, {}))
        return told + self._settings(node, before)

    def _of_device(self, subject: str) -> list[str]:
        place = self._place(subject)
        if place is None or "/" not in subject:
            return []
        now, then = (f.get(s, "accelerator.uuid") for f, s in ((self.now.facts, subject), (self.before.facts, place)))
        other = [f"another accelerator is behind {subject}"] if now and then and now != then else []
        return other + self._settings(subject, place)

    def _settings(self, subject: str, before: str) -> list[str]:
        ours, theirs = self.now.facts.on(subject), self.before.facts.on(before)
        same = [key for key in SETTINGS if key in ours and key in theirs]
        return [
            f"{key} {figure(theirs[key])} → {figure(ours[key])}" for key in same if ours[key] != theirs[key]
        ]  # fmt: skip


def _changed(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    both = sorted(before.keys() | now.keys()) if before and now else []
    return [
        f"{name} {before.get(name, 'absent')} → {now.get(name, 'absent')}"
        for name in both
        if before.get(name) != now.get(name)
    ]


def _method(figures: Figures, value: Value) -> tuple[str, str] | None:
    plans = (figures.measured.plans.get(trial) for trial in value.trials)
    return next(((plan.probe, plan.method) for plan in plans if plan is not None), None)


def hardware_of(header: RunHeader, facts: Facts | None = None) -> dict[str, str]:
    """The hardware behind each node's name as it was last seen, by one hash over its serial numbers."""
    found: dict[str, str] = {}
    for segment in header.segments:
        found |= segment.hardware
    for node in header.promised:
        told = facts.get(node.node, "hardware.identity") if facts else None
        if isinstance(told, str):
            found.setdefault(node.node, told)
    return found


def software_of(header: RunHeader) -> dict[str, dict[str, str]]:
    """The software of each node as it was last seen, with hwlottery's own version."""
    found: dict[str, dict[str, str]] = {}
    for segment in header.segments:
        for node, software in segment.software.items():
            found[node] = {**software, "hwlottery": segment.hwlottery}
    return found


def counterparts(
    now: RunHeader, hardware: Mapping[str, str], before: RunHeader, hardware_before: Mapping[str, str]
) -> dict[str, str]:
    """For each node the name that it had in the earlier run: by its hardware where no other node has the same identity,
    else by its name. Nodes that the earlier run has not seen are not in it."""
    promised = {node.node for node in before.promised}
    ours, theirs = Counter(hardware.values()), Counter(hardware_before.values())
    owner = {identity: node for node, identity in hardware_before.items() if theirs[identity] == 1 and node in promised}
    found: dict[str, str] = {}
    for node in (promised_now.node for promised_now in now.promised):
        identity = hardware.get(node, "")
        same = owner.get(identity) if ours[identity] == 1 else None
        if same or node in promised:
            found[node] = same or node
    return found


def against(value: Value, number: float, before: Before, metric: Metric) -> Against | None:
    """The number as a share of the earlier value, with an interval from both runs' samples and from what differs from
    run to run; None where there is no earlier value above 0."""
    earlier = before.value
    if earlier is None or earlier.value is None or not earlier.value > 0 or not number > 0:
        return None
    return Against(
        share=earlier.value / number if metric.better == "lower" else number / earlier.value,
        error=math.hypot(*(error_of_median(one.noise or 0.0, one.samples) for one in (value, earlier))),
        between=math.sqrt(2) * before.spread,
        samples=min(value.samples, earlier.samples),
    )


def in_words(told: Against, before: float, unit: str) -> str:
    """'87.1 % of the baseline's 731 TFLOPS (95 %: 82.4 % to 92.1 %)'."""
    low, high = (f"{bound * 100:.1f} %" for bound in (told.low, told.high))
    return f"{told.share * 100:.1f} % of the baseline's {figure(before, unit)} (95 %: {low} to {high})"


def suspected(suspects: tuple[str, ...]) -> str:
    """'; changed since: torch 2.12.0 → 2.13.0', or nothing."""
    return f"; changed since: {several(suspects, MOST_SUSPECTS)}" if suspects else ""
