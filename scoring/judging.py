"""From a policy's checks to findings: each check on each promised subject, judged by its layers."""

from collections import Counter
from collections.abc import Iterator
from string import Template

import msgspec

from ..evidence import Metric, metric
from ..evidence.records import Params, Scalar
from ..references import Accelerator
from .composite import Shares
from .derived import Figures
from .facts import the_one_kind
from .layers import (
    Comparison,
    Group,
    Judged,
    by_baseline,
    by_contract,
    by_majority,
    by_peers,
    by_reference,
    comparison,
    group_of,
)
from .policy_model import Check, Range, Wanted
from .rules import RULES, Happenings
from .scope import Target, targets
from .values import ENOUGH_SAMPLES, FEW_SAMPLES, NOISY, ParamsKey, Value, params_key
from .verdict import Confidence, Finding, Result
from .words import figure, params_in_words

# The worst first: a value that failed is a fault, whatever else is missing; what is missing is never a pass.
WORST_FIRST: tuple[Result, ...] = ("fail", "not_measured", "warn", "pass")
INTERMITTENT = "intermittent: "
_RANK = {result: place for place, result in enumerate(WORST_FIRST)}


class Judge:
    """Judges the checks of one policy on one run. `shares` collects shares of the reference for the index."""

    def __init__(self, figures: Figures, happenings: Happenings, baseline: Figures | None = None) -> None:
        self.figures = figures
        self.happenings = happenings
        self.baseline = baseline
        self.shares: Shares = {}
        self._comparisons: dict[tuple[str, str, ParamsKey], Comparison] = {}
        self._groups: dict[tuple[str, str, ParamsKey], Group] = {}

    def findings(self, check: Check) -> Iterator[Finding]:
        """One finding for each subject in the check's scope."""
        scope = list(targets(check, self.figures.header, self.figures.facts))
        if check.fact is not None:
            yield from self._on_facts(check, scope)
            return
        if check.metric is not None and check.layers.peers is not None:
            self._gather_peers(check, scope)
        for target in scope:
            yield self._on_rule(check, target) if check.rule else self._on_metric(check, target)

    # rules and facts

    def _on_rule(self, check: Check, target: Target) -> Finding:
        assert check.rule is not None
        ruled = RULES[check.rule](target.subject, self.figures, self.happenings)
        finding = self._finding(check, target, ruled.result)
        if ruled.number is not None and check.layers.contract is not None:
            return self._ruled_figure(check, target, ruled.number, ruled.unit)
        return msgspec.structs.replace(
            finding,
            layer="rule",
            observed=ruled.observed or None,
            expected=ruled.expected,
            reason=ruled.reason,
            detail=ruled.detail,
            evidence=ruled.trials[:20],
        )

    def _ruled_figure(self, check: Check, target: Target, number: float, unit: str) -> Finding:
        """A rule's figure against the check's contract: what falls short of it was not looked at for long enough."""
        assert check.layers.contract is not None
        judged = by_contract(number, check.layers.contract, unit)
        short = judged.result == "fail"
        finding = self._finding(check, target, "not_measured" if short else judged.result)
        return msgspec.structs.replace(
            finding,
            layer="contract",
            observed=None if short else number,
            expected=judged.expected,
            threshold=judged.threshold,
            unit=unit,
            reason="too_short" if short else "",
            detail=f"it was {figure(number, unit)}" if short else "",
        )

    def _on_facts(self, check: Check, scope: list[Target]) -> Iterator[Finding]:
        assert check.fact is not None
        facts = self.figures.facts
        everywhere = Counter(v for target in scope if (v := facts.get(target.subject, check.fact)) is not None)
        for target in scope:
            value = facts.get(target.subject, check.fact)
            if value is None or target.unknown:
                yield self._fact_not_seen(check, target)
                continue
            judged = [*self._fact_layers(check, value, everywhere)]
            worst = min(judged, key=lambda one: _RANK[one.result], default=None)
            finding = self._finding(check, target, worst.result if worst else "pass")
            finding = msgspec.structs.replace(finding, unit=_unit_of_fact(check.fact))
            yield _with_layer(finding, worst, observed=value, fallback="recorded")

    def _fact_layers(self, check: Check, value: Scalar, everywhere: Counter[Scalar]) -> Iterator[Judged]:
        if check.layers.contract is not None:
            yield by_contract(value, check.layers.contract, _unit_of_fact(check.fact or ""))
        if check.layers.uniform is not None:
            yield by_majority(value, check.layers.uniform, everywhere)

    def _fact_not_seen(self, check: Check, target: Target) -> Finding:
        closed = self.figures.facts.why_not(target.subject, check.fact or "")
        return msgspec.structs.replace(
            self._finding(check, target, "not_measured"),
            reason="closed_to_tenant" if closed else "not_returned",
            detail=target.unknown or closed or f"{check.fact} was not recorded",
            expected="recorded",
        )

    # metrics

    def _on_metric(self, check: Check, target: Target) -> Finding:
        described = metric(check.metric or "")
        finding = msgspec.structs.replace(
            self._finding(check, target, "not_measured"), metric=described.name, unit=described.unit
        )
        values, gaps = self._wanted(check, target)
        judged = [self._judged(check, target, described, finding, value) for value in values]
        judged += [self._never_measured(check, finding, gap, target.unknown) for gap in gaps]
        return min(judged, key=lambda one: _RANK[one.result])

    def _never_measured(self, check: Check, finding: Finding, gap: Params, unknown: str) -> Finding:
        """A value that the check asks for and nobody recorded."""
        if check.layers.reference is not None:
            self._keep_share(check, finding.subject, None)
        described = params_in_words(gap)
        detail = unknown or f"no value was recorded{' for ' + described if described else ''}"
        return msgspec.structs.replace(finding, params=gap, reason="not_returned", detail=detail, expected="measured")

    def _wanted(self, check: Check, target: Target) -> tuple[list[Value], list[Params]]:
        """The values that the check asks for, and the params that it asks for and nobody measured."""
        if target.unknown:
            return [], [{}]
        values = list(self.figures.of(check.metric or "", target.subject))
        if target.also:
            values += self.figures.of(check.metric or "", target.also)
        values = [value for value in values if _asked(value.params, check.where)]
        gaps: list[Params] = []
        for key, wanted in check.where.items():
            if not isinstance(wanted, Range):
                each = wanted if isinstance(wanted, tuple) else (wanted,)
                gaps += [{key: one} for one in each if not any(v.params.get(key) == one for v in values)]
        return values, gaps if values else gaps or [{}]

    def _judged(self, check: Check, target: Target, described: Metric, finding: Finding, value: Value) -> Finding:
        """One value against all layers of the check; the worst layer speaks."""
        finding = msgspec.structs.replace(
            finding,
            params=value.params,
            evidence=value.trials[:20],
            first_observed=value.earlier[0] if value.earlier else None,
        )
        number = value.value
        if number is not None and check.any_attempt:
            number = _worst_of((number, *value.earlier), described)
        if number is None:
            return self._value_missing(check, finding, value)
        layers = list(self._layers(check, target, described, value, number))
        if check.layers.reference is not None:
            share = next((one.share for one in layers if one.layer == "reference"), None)
            self._keep_share(check, target.subject, share)
        worst = min(layers, key=lambda one: _RANK[one.result], default=None)
        result: Result = worst.result if worst else "pass"
        finding = self._resulting(check, finding, target, result)
        finding = _with_layer(finding, worst, observed=number, fallback="measured")
        finding = msgspec.structs.replace(finding, confidence=_confidence(value, worst))
        not_judged = "; ".join(dict.fromkeys(one.not_judged for one in layers if one.not_judged))
        if not_judged:
            finding = msgspec.structs.replace(finding, detail=f"not judged among peers: {not_judged}")
        return self._intermittent(check, target, described, finding, value)

    def _value_missing(self, check: Check, finding: Finding, value: Value) -> Finding:
        if check.layers.reference is not None:
            self._keep_share(check, finding.subject, None)
        return msgspec.structs.replace(
            finding, observed=None, reason=value.reason, detail=value.detail, expected="measured"
        )

    def _layers(self, check: Check, target: Target, described: Metric, value: Value, number: float) -> Iterator[Judged]:
        layers = check.layers
        if layers.contract is not None:
            yield by_contract(number, layers.contract, described.unit)
        if layers.reference is not None:
            yield by_reference(number, self._comparison(check, target, described, value.params), described)
        if layers.peers is not None:
            group = self._groups[self._group_key(check, target, value.params)]
            yield by_peers(number, layers.peers, group, described, retested=value.attempts > 1)
        if layers.baseline is not None and self.baseline is not None:
            yield by_baseline(number, layers.baseline, self._before(check, target, value.params), described)

    def _comparison(self, check: Check, target: Target, described: Metric, params: Params) -> Comparison:
        assert check.layers.reference is not None
        accelerator = self._accelerator(check, target)
        key = (check.check, accelerator.key if accelerator else "", params_key(params))
        if key not in self._comparisons:
            self._comparisons[key] = comparison(check.layers.reference, accelerator, described, params)
        return self._comparisons[key]

    def _accelerator(self, check: Check, target: Target) -> Accelerator | None:
        if check.each == "accelerator":
            return self.figures.facts.accelerator(target.subject)
        nodes = [node for name in target.nodes if (node := self.figures.node(name))]
        return the_one_kind(self.figures.facts.accelerator_of_node(node) for node in nodes)

    def _before(self, check: Check, target: Target, params: Params) -> float | None:
        assert self.baseline is not None
        same = (v for v in self.baseline.of(check.metric or "", target.subject) if v.params == params)
        return next((value.value for value in same), None)

    def _keep_share(self, check: Check, subject: str, share: float | None) -> None:
        self.shares.setdefault(check.check, []).append((subject, share))

    # peers and retests

    def _gather_peers(self, check: Check, scope: list[Target]) -> None:
        """The groups of like subjects, with the last attempts' values: each is made once."""
        numbers: dict[tuple[str, str, ParamsKey], list[float]] = {}
        for target in scope:
            for value in self.figures.of(check.metric or "", target.subject):
                key = self._group_key(check, target, value.params)
                if _asked(value.params, check.where):
                    numbers.setdefault(key, []).extend([] if value.value is None else [value.value])
        self._groups.update({key: group_of(found) for key, found in numbers.items()})

    def _group_key(self, check: Check, target: Target, params: Params) -> tuple[str, str, ParamsKey]:
        """Who is compared with whom: the same check, params and kind of accelerator, on one node or on all."""
        peers = check.layers.peers
        where = target.nodes[0] if peers is not None and peers.within == "node" and target.nodes else ""
        kind = self.figures.facts.get(target.subject, "accelerator.name") if check.each == "accelerator" else None
        return (check.check, f"{where}|{kind}", params_key(params))

    def _intermittent(self, check: Check, target: Target, described: Metric, finding: Finding, value: Value) -> Finding:
        """Attempts that disagree are at least a warning: a fault that comes and goes is one."""
        if finding.result != "pass" or not value.earlier:
            return finding
        first = self._layers(check, target, described, value, value.earlier[0])
        disagreeing = any(one.result in ("fail", "warn") or one.outlier for one in first)
        if not disagreeing:
            return finding
        shown = f"first {figure(value.earlier[0], described.unit)}, in the retest {figure(value.value, described.unit)}"
        finding = self._resulting(check, finding, target, "warn")
        return msgspec.structs.replace(finding, detail=INTERMITTENT + shown, confidence="medium")

    # findings

    def _finding(self, check: Check, target: Target, result: Result) -> Finding:
        blank = Finding(
            check=check.check,
            category=check.category,
            subject=target.subject,
            result=result,
            required=False,
        )
        return self._resulting(check, blank, target, result)

    def _resulting(self, check: Check, finding: Finding, target: Target, result: Result) -> Finding:
        """A finding with its result: what may only warn warns, and who would have to be taken out is named.

        A tier says what must be measured; what was measured and failed counts in every tier.
        """
        if check.severity == "warn" and result == "fail":
            result = "warn"
        demanded = any(tier in check.tiers for node in target.nodes for tier in self.figures.facts.tiers(node))
        required = check.severity == "required" and (demanded or result == "fail")
        excludable = check.excludable and len(target.nodes) == 1
        return msgspec.structs.replace(
            finding,
            result=result,
            required=required,
            excludable=excludable,
            excludes=target.nodes[0] if excludable and result == "fail" else None,
            confidence="low" if result == "not_measured" else finding.confidence,
        )


def _asked(params: Params, where: dict[str, Wanted]) -> bool:
    return all(key in params and _within(params[key], wanted) for key, wanted in where.items())


def _within(value: Scalar, wanted: Wanted) -> bool:
    if isinstance(wanted, tuple):
        return value in wanted
    if not isinstance(wanted, Range):
        return value == wanted
    if isinstance(value, str):
        return False
    above = wanted.at_least is None or value >= wanted.at_least
    return above and (wanted.at_most is None or value <= wanted.at_most)


def _worst_of(numbers: tuple[float, ...], described: Metric) -> float:
    return min(numbers) if described.better == "higher" else max(numbers)


def _with_layer(finding: Finding, worst: Judged | None, observed: Scalar, fallback: str) -> Finding:
    if worst is None:
        return msgspec.structs.replace(finding, observed=observed, expected=fallback)
    return msgspec.structs.replace(
        finding,
        observed=observed,
        layer=worst.layer,
        expected=worst.expected,
        threshold=worst.threshold,
        reason=worst.reason,
        detail=worst.detail,
    )


def _confidence(value: Value, worst: Judged | None) -> Confidence:
    """How far the figure is to be trusted: many quiet samples, or few or noisy ones.

    A count of faults is exact, and what was seen again in a retest is surer.
    """
    if worst is not None and worst.threshold == 0:
        return "high"
    noisy = value.noise is not None and value.noise > NOISY
    if noisy or value.samples < FEW_SAMPLES:
        return "low" if value.attempts == 1 else "medium"
    return "high" if value.samples >= ENOUGH_SAMPLES or value.attempts > 1 else "medium"


def _unit_of_fact(key: str) -> str:
    return "bytes" if key.endswith((".memory", ".memlock", ".size", ".free", ".total")) else ""


def filled(template: str, finding: Finding) -> str:
    """A policy's text with $subject, $node, $observed, $expected and $metric put in."""
    node = finding.excludes or finding.subject.split("/")[0]
    observed = figure(finding.observed, finding.unit)
    names = {
        "subject": finding.subject,
        "node": node,
        "observed": observed,
        "expected": finding.expected,
        "metric": finding.metric or finding.check,
    }
    return Template(template).safe_substitute(names)
