"""What a name stands for: a metric, a check of a policy, or an accelerator among the references."""

import difflib
import re
from string import Template

from msgspec import Struct

from ..evidence import CATALOGUE, TIERS, Metric
from ..evidence.errors import HwlotteryError
from ..references import Accelerator, Fabric, References, ReferenceValue, shipped
from .fact_checks import unit_of
from .policy import load_policy, policy_names
from .policy_layers import Contract, Range, Wanted
from .policy_model import Check
from .words import figure, params_in_words, percent

_BETTER = {"higher": "Higher is better.", "lower": "Lower is better.", "neither": "Neither direction is better."}
_RULES = {
    "evidence.complete": "All records are there, none lost, doubled, torn or altered, and the run finished.",
    "node.responds": "A promised node joins and answers until the run ends.",
    "node.accelerators": "A node takes part with accelerators that torch reaches by CUDA.",
    "health.events": "No Xid, uncorrected error or lost link of severity error is seen during the run.",
    "run.length": "The run looked for long enough.",
    "node.count": "As many nodes joined as were bought.",
    "reliability.mtbf": "Nodes fail as seldom as promised, by exact Poisson bounds (95 %), or it is not measured yet.",
    "pairs.nodes": "A node is as fast with its partners as good pairs are; one that is slow with all is slow itself.",
    "pairs.links": "A pair of two nodes that do well with others is as fast as they are.",
    "pairs.stalls": "Small messages between nodes do not wait for a retransmission.",
    "pairs.exact": "Every element of every sum of two nodes is right.",
    "pairs.line_rate": "No pair reaches more than its NICs can carry: that would be no figure of the wire.",
    "rails.wire": "Each NIC of each node reaches its share of the line rate, and what good rails reach.",
    "rails.exact": "Every element of every sum over a rail is right.",
    "fabric.network": "Nodes talk by RDMA where they have it, straight from the accelerators' memory.",
}


class UnknownName(HwlotteryError):
    """A name that stands for nothing; the message names the nearest ones."""


class Explanation(Struct, frozen=True, kw_only=True):
    """What a name stands for, in lines of plain text; `source` where there is one."""

    kind: str
    title: str
    lines: tuple[str, ...]
    source: str = ""


def explain(name: str, references: References | None = None) -> Explanation:
    """What a metric, check or reference is; `references` are ours unless others are given. Raises UnknownName."""
    known = references or shipped()
    metric = next((metric for metric in CATALOGUE if metric.name == name), None)
    checks = _checks().get(name, {})
    if metric is not None:
        return _of_metric(metric)
    if checks:
        return _of_check(name, checks)
    kinds = _hardware_called(name.casefold(), known)
    if len(kinds) == 1:
        return _of_hardware(kinds[0], known)
    if kinds:
        lines = tuple(f"{kind.key}: {', '.join(_names_of(kind))}" for kind in kinds)
        return Explanation(kind="references", title=f"{name}: which of these {len(kinds)}?", lines=lines)
    raise UnknownName(_nearest(name, known))


def _hardware_called(wanted: str, known: References) -> list[Accelerator | Fabric]:
    """The one of exactly this key or name; else all that have it as a word of their name, as people say H100."""
    all_: tuple[Accelerator | Fabric, ...] = (*known.accelerators, *known.fabrics)
    exact = [kind for kind in all_ if wanted in (kind.key, *(name.casefold() for name in _names_of(kind)))]
    words = (re.split(r"[\s-]+", f"{kind.key} {' '.join(_names_of(kind))}".casefold()) for kind in known.accelerators)
    return exact or [kind for kind, said in zip(known.accelerators, words, strict=True) if wanted in said]


def _names_of(kind: Accelerator | Fabric) -> tuple[str, ...]:
    return kind.names if isinstance(kind, Accelerator) else (kind.title,)


def _nearest(name: str, known: References) -> str:
    keys = {key.casefold(): key for key in (*(metric.name for metric in CATALOGUE), *_checks())}
    hardware: tuple[Accelerator | Fabric, ...] = (*known.accelerators, *known.fabrics)
    keys |= {said.casefold(): kind.key for kind in hardware for said in (kind.key, *_names_of(kind))}
    near = difflib.get_close_matches(name.casefold(), keys, n=3, cutoff=0.5)
    found = list(dict.fromkeys(keys[match] for match in near))
    hint = f"did you mean {', '.join(found)}?" if found else "give a metric, a check, an accelerator or a fabric"
    return f"unknown name {name!r}: {hint}"


def _checks() -> dict[str, dict[str, Check]]:
    """Each check by name, with the policies that have it."""
    found: dict[str, dict[str, Check]] = {}
    for policy in policy_names():
        for check in load_policy(policy).checks:
            found.setdefault(check.check, {})[policy] = check
    return found


def _of_metric(metric: Metric) -> Explanation:
    demanded = sorted(
        f"{policy}: {check.check}"
        for by_policy in _checks().values()
        for policy, check in by_policy.items()
        if check.metric == metric.name
    )
    lines = [
        metric.meaning,
        f"Unit: {metric.unit}. {_BETTER[metric.better]}",
        f"Measured on: {', '.join(metric.subjects)}.",
        f"Possible: {metric.possible}; anything else is not measured.",
        "Computed in scoring from measured metrics."
        if metric.derived
        else f"Its value is the {metric.statistic} of its samples.",
        f"Demanded by: {', '.join(demanded)}." if demanded else "No policy that comes with hwlottery demands it.",
    ]
    return Explanation(kind="metric", title=metric.name, lines=tuple(lines), source="evidence/metrics.py")


def _of_check(name: str, by_policy: dict[str, Check]) -> Explanation:
    first = next(iter(by_policy.values()))
    lines = [f"Looks at {_looked_at(first)}; each {first.each} is judged."]
    lines += [f"{policy}: {_demand(check)}" for policy, check in by_policy.items()]
    if first.action:
        lines.append("When it fails: " + Template(first.action).safe_substitute(subject="the subject", node="the node"))
    files = ", ".join(f"scoring/policies/{policy}.yaml" for policy in by_policy)
    return Explanation(kind="check", title=name, lines=tuple(lines), source=files)


def _looked_at(check: Check) -> str:
    if check.rule:
        return f"the evidence by a rule ({_RULES[check.rule].rstrip('.')})"
    return f"the metric {check.metric}" if check.metric else f"the fact {check.fact}"


def _demand(check: Check) -> str:
    parts = [_weight(check)]
    if check.device:
        parts.append(f"on {check.device}")
    if check.where:
        parts.append("where " + ", ".join(f"{key} is {_wanted(wanted)}" for key, wanted in check.where.items()))
    parts += _layers(check)
    if check.excludable:
        parts.append("a failing node can be taken out")
    return "; ".join(parts) + "."


def _weight(check: Check) -> str:
    if check.severity == "warn":
        return "warns only"
    if not check.tiers:
        return "a fault that was seen fails, nobody has to look for one"
    return "required" if set(check.tiers) == set(TIERS) else f"required of {', '.join(check.tiers)}"


def _wanted(wanted: Wanted) -> str:
    if isinstance(wanted, Range):
        bounds = (("at least", wanted.at_least), ("at most", wanted.at_most))
        return " and ".join(f"{word} {bound:g}" for word, bound in bounds if bound is not None)
    return " and ".join(map(str, wanted)) if isinstance(wanted, tuple) else str(wanted)


def _layers(check: Check) -> list[str]:
    layers, parts = check.layers, []
    if layers.contract is not None:
        parts.append("contract: " + _bounds(layers.contract, unit_of(check)))
    if layers.reference is not None:
        shares = [
            f"{word} below {percent(share)}" for word, share in _shares(layers.reference.warn, layers.reference.fail)
        ]
        parts.append(f"reference ({layers.reference.of}): {', '.join(shares)}")
        of_peak = [
            f"{word} below {percent(share)}"
            for word, share in _shares(layers.reference.or_peak_warn, layers.reference.or_peak_fail)
        ]
        if of_peak:
            parts.append(f"without one the peak: {', '.join(of_peak)}")
    if layers.maximum is not None:
        parts.append("fails below the most that the device says it can")
    if layers.peers is not None:
        effect, sigmas = percent(layers.peers.effect), f"{layers.peers.sigmas:g}"
        parts.append(f"peers on the {layers.peers.within}: {effect} and {sigmas} robust sigmas worse, seen again")
    if layers.baseline is not None:
        shares = [
            f"{word} below {percent(share)}" for word, share in _shares(layers.baseline.warn, layers.baseline.fail)
        ]
        parts.append(f"baseline: {', '.join(shares)}")
    if layers.uniform is not None:
        parts.append("the same everywhere, by majority")
    return parts or ["it has to hold" if check.rule else "it has to be there"]


def _shares(warn: float | None, fail: float | None) -> list[tuple[str, float]]:
    return [(word, share) for word, share in (("warns", warn), ("fails", fail)) if share is not None]


def _bounds(contract: Contract, unit: str) -> str:
    given = contract.model_dump(exclude_none=True)
    return ", ".join(f"{name.replace('_', ' ')} {figure(value, unit)}" for name, value in given.items())


def _of_hardware(kind: Accelerator | Fabric, known: References) -> Explanation:
    found_by = _found_by(kind) if isinstance(kind, Accelerator) else _fabric_found_by(kind)
    units = {metric.name: metric.unit for metric in CATALOGUE}
    lines = [*found_by, *(_value_line(value, units[value.metric]) for value in kind.values)]
    cited = "; ".join({value.source: f"{value.source}: {known.source(kind, value)}" for value in kind.values}.values())
    return Explanation(kind="reference", title=kind.key, lines=tuple(lines), source=cited)


def _found_by(kind: Accelerator) -> list[str]:
    found_by = [f"Device names: {', '.join(kind.names)}."]
    if kind.memory_gb is not None:
        found_by.append(f"Memory: {kind.memory_gb:g} GB on the label.")
    if kind.power_limit_w is not None:
        found_by.append(f"Power limit: {kind.power_limit_w:g} W; another limit is another thing and has no reference.")
    return found_by


def _fabric_found_by(kind: Fabric) -> list[str]:
    found_by = [f"{kind.title}: {figure(kind.line_rate, 'GB/s')} a node by the line rate of its NICs."]
    if kind.vendors:
        found_by.append(f"Machines by: {', '.join(kind.vendors)}.")
    if kind.accelerators:
        found_by.append(f"With: {', '.join(kind.accelerators)}.")
    return found_by


def _value_line(value: ReferenceValue, unit: str) -> str:
    where = f" ({params_in_words(dict(value.where))})" if value.where else ""
    note = f"; {value.note}" if value.note else ""
    return f"{value.metric}{where}: {value.kind} {figure(value.value, unit)} [{value.source}]{note}"
