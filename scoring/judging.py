"""From a policy's checks to findings: each check on each promised subject, judged by its layers."""

from collections.abc import Iterator

import msgspec

from ..evidence import Metric, metric
from ..evidence.records import Params
from ..references import Accelerator, Fabric
from .asking import wanted_values
from .attempts import number_to_judge, other_attempts, that_decide
from .baselines import BaselineFigures
from .comparing import Comparing
from .composite import Shares
from .derived import Figures
from .fabrics import between_nodes, fabric_of
from .fact_checks import judge_facts
from .facts import the_one_kind
from .findings import INTERMITTENT, NOT_JUDGED, badness, confidence_of, new_finding, resulting, standing
from .happenings import Happenings
from .layers import Comparison, Judged, by_baseline, by_contract, by_maximum, by_reference, comparison
from .maxima import maximum_of
from .pair_checks import PAIR_RULES, judge_pairs
from .pair_exactness import EXACT_RULES, judge_exactness
from .pair_line_rate import judge_line_rate
from .pair_stalls import judge_stalls
from .peer_groups import PeerGroups
from .peers import by_peers
from .policy_layers import Baseline
from .policy_model import Check
from .rail_checks import judge_rails
from .rule_checks import judge_rule
from .scope import Target, nodes_of, targets
from .values import ParamsKey, Value, params_key
from .verdict import Finding
from .words import counted, figure, params_in_words, several

MOST_TRIALS = 20  # named in a finding


class Judge:
    """Judges the checks of one policy on one run. `shares` collects shares of the reference for the index."""

    def __init__(self, figures: Figures, happenings: Happenings, baseline: Figures | None = None) -> None:
        self.figures = figures
        self.happenings = happenings
        self.baseline = BaselineFigures(figures, baseline) if baseline is not None else None
        self.compared = Comparing()
        self.shares: Shares = {}
        self._peers = PeerGroups(figures)
        self._comparisons: dict[tuple[str, str, ParamsKey], Comparison] = {}

    def findings(self, check: Check) -> Iterator[Finding]:
        """One finding for each subject in the check's scope."""
        sought = check.metric is not None and bool(self.figures.measured.subjects(check.metric))
        scope = list(targets(check, self.figures.header, self.figures.facts, sought=sought))
        if check.fact is not None:
            yield from judge_facts(check, scope, self.figures.facts)
        elif check.rule in PAIR_RULES:
            yield from judge_pairs(check, scope, self.figures, self.happenings)
        elif check.rule == "pairs.stalls":
            yield from judge_stalls(check, scope, self.figures, self.happenings)
        elif check.rule == "rails.wire":
            yield from judge_rails(check, scope, self.figures, self.happenings)
        elif check.rule == "pairs.line_rate":
            yield from judge_line_rate(check, scope, self.figures)
        elif check.rule in EXACT_RULES:
            yield from judge_exactness(check, scope, self.figures, self.happenings)
        elif check.rule is not None:
            yield from (judge_rule(check, target, self.figures, self.happenings) for target in scope)
        else:
            if check.layers.peers is not None:
                self._peers.gather(check, scope)
            yield from (self._on_metric(check, target) for target in scope)

    def _on_metric(self, check: Check, target: Target) -> Finding:
        """The worst of the values that the check asks for, and of those that nobody recorded."""
        described = metric(check.metric or "")
        finding = msgspec.structs.replace(
            new_finding(check, target, "not_measured", self.figures.facts), metric=described.name, unit=described.unit
        )
        values, gaps = wanted_values(self.figures, check, target)
        judged = [self._judged(check, target, described, finding, value) for value in values]
        judged += [self._never_measured(check, finding, gap, target.unknown) for gap in gaps]
        if self.figures.header.joins:
            judged.reverse()  # of equals, the one that was measured last
        return min(judged, key=badness)

    def _never_measured(self, check: Check, finding: Finding, gap: Params, unknown: str) -> Finding:
        """A value that the check asks for and nobody recorded."""
        self._keep_share(check, finding.subject, None)
        described = params_in_words(gap)
        detail = unknown or f"no value was recorded{' for ' + described if described else ''}"
        return msgspec.structs.replace(finding, params=gap, reason="not_returned", detail=detail, expected="measured")

    def _judged(self, check: Check, target: Target, described: Metric, finding: Finding, value: Value) -> Finding:
        """One value against all layers of the check; the worst layer speaks."""
        if value.value is None and not (check.any_attempt and value.earlier):
            return self._value_missing(check, finding, value)
        if value.value is not None and value.samples < check.samples_at_least:
            return self._too_few(check, finding, value)
        number = number_to_judge(check, described, value)
        layers = that_decide(list(self._layers(check, target, described, value, number)))
        worst = min(layers, key=badness, default=None)
        if value.value is None and (worst is None or worst.result != "fail"):
            return self._value_missing(check, finding, value)
        self._keep_share(check, target.subject, next((one.share for one in layers if one.share is not None), None))
        stands = standing(
            check, target, worst.result if worst else "pass", worst.reason if worst else "", self.figures.facts
        )
        finding = msgspec.structs.replace(  # all at once: a large run has a hundred thousand of these
            finding,
            params=value.params,
            evidence=value.trials[:MOST_TRIALS],
            first_observed=value.earlier[0] if value.earlier else None,
            result=stands.result,
            required=stands.required,
            excludable=stands.excludable,
            excludes=stands.excludes,
            observed=number,
            layer=worst.layer if worst else None,
            expected=worst.expected if worst else "measured",
            threshold=worst.threshold if worst else None,
            reason=worst.reason if worst and stands.result == "not_measured" else "",
            confidence=confidence_of(value, worst),
            detail=_with_remarks(worst.detail if worst else "", layers),
        )
        return self._where(self._intermittent(check, target, described, finding, value), value)

    def _where(self, finding: Finding, value: Value) -> Finding:
        """Of a figure of the whole cluster, over which nodes it was taken, where not all were there at one time."""
        if finding.subject != "cluster" or not self.figures.header.joins:
            return finding
        plans = [self.figures.measured.plans[trial] for trial in value.trials if trial in self.figures.measured.plans]
        nodes = sorted({node for plan in plans for rank in plan.ranks for node in nodes_of(rank)})
        over = f"over {several(nodes, 8)}"
        return msgspec.structs.replace(finding, detail=f"{finding.detail}; {over}" if finding.detail else over)

    def _value_missing(self, check: Check, finding: Finding, value: Value) -> Finding:
        self._keep_share(check, finding.subject, None)
        return msgspec.structs.replace(
            finding,
            params=value.params,
            evidence=value.trials[:MOST_TRIALS],
            first_observed=value.earlier[0] if value.earlier else None,
            reason=value.reason,
            detail=value.detail,
            expected="measured",
        )

    def _too_few(self, check: Check, finding: Finding, value: Value) -> Finding:
        """What rests on fewer samples than the policy asks for decides nothing."""
        self._keep_share(check, finding.subject, None)
        expected = f"at least {counted(check.samples_at_least, 'sample')}"
        detail = f"it rests on {counted(value.samples, 'sample')}"
        return msgspec.structs.replace(finding, reason="too_few", detail=detail, expected=expected)

    def _layers(
        self, check: Check, target: Target, described: Metric, value: Value, number: float
    ) -> Iterator[Judged]:  # fmt: skip
        layers = check.layers
        if layers.contract is not None:
            yield by_contract(number, layers.contract, described.unit)
        if layers.reference is not None:
            yield by_reference(number, self._comparison(check, target, described, value.params), described)
        if layers.maximum is not None:
            fact, best = maximum_of(self.figures.facts, target.subject, described.name)
            yield by_maximum(number, best, fact, described)
        if layers.peers is not None:
            group = self._peers.of(check, target, value.params)
            yield by_peers(number, layers.peers, group, described, others=other_attempts(value, number))
        if layers.baseline is not None and self.baseline is not None:
            yield self._by_baseline(check, layers.baseline, self.baseline, target, value, number)

    def _by_baseline(  # noqa: PLR0917  # a value with all that it is compared by
        self, check: Check, layer: Baseline, baseline: BaselineFigures, target: Target, value: Value, number: float
    ) -> Judged:
        described = metric(check.metric or "")
        if target.subject == "cluster" and not baseline.same_nodes:
            why = "the baseline is of other nodes"
            return Judged(layer="baseline", result="pass", expected="measured", not_judged=why)
        before = baseline.of(described, target, value)
        others = other_attempts(value, number)
        once = len(target.nodes) != 1 or check.each == "cluster" or check.category == "burn_in"
        judged = by_baseline(value, number, layer, before, described, others=others, once=once)
        self.compared.keep(check, target, value, before, described, judged)
        return judged

    def _comparison(self, check: Check, target: Target, described: Metric, params: Params) -> Comparison:
        assert check.layers.reference is not None
        hardware, why = self._hardware(check, target)
        key = (check.check, hardware.key if hardware else why, params_key(params))
        if key not in self._comparisons:
            references = self.figures.facts.references
            found = comparison(check.layers.reference, hardware, described, params, references)
            self._comparisons[key] = found if hardware or not why else msgspec.structs.replace(found, why_none=why)
        return self._comparisons[key]

    def _hardware(self, check: Check, target: Target) -> tuple[Accelerator | Fabric | None, str]:
        """What the subject is made of: its accelerator, the one kind of all its node has, or the fabric between nodes;
        or why that is not known."""
        if between_nodes(check):
            return fabric_of(self.figures, target.nodes)
        if check.each == "accelerator":
            return self.figures.facts.accelerator(target.subject), ""
        nodes = [node for name in target.nodes if (node := self.figures.node(name))]
        return the_one_kind(self.figures.facts.accelerator_of_node(node) for node in nodes), ""

    def _keep_share(self, check: Check, subject: str, share: float | None) -> None:
        if check.layers.reference is not None:
            self.shares.setdefault(check.check, []).append((subject, share))

    def _intermittent(
        self, check: Check, target: Target, described: Metric, finding: Finding, value: Value
    ) -> Finding:  # fmt: skip
        """Attempts that disagree are at least a warning: a fault that comes and goes is one."""
        if finding.result != "pass" or not value.earlier:
            return finding
        bad = [number for number in value.earlier if self._is_bad(check, target, described, value, number)]
        if not bad:
            return finding
        when = "first" if bad[0] == value.earlier[0] else "once"
        shown = f"{when} {figure(bad[0], described.unit)}, in the retest {figure(value.value, described.unit)}"
        finding = resulting(check, finding, target, "warn", self.figures.facts)
        return msgspec.structs.replace(finding, detail=INTERMITTENT + shown, confidence="medium")

    def _is_bad(self, check: Check, target: Target, described: Metric, value: Value, number: float) -> bool:
        """Whether an earlier attempt would have warned or failed, were it the last, or been an outlier."""
        judged = self._layers(check, target, described, value, number)
        return any(one.outlier or one.result in ("warn", "fail") for one in judged)


def _with_remarks(detail: str, layers: list[Judged]) -> str:
    remarks = [f"{NOT_JUDGED[one.layer]}: {one.not_judged}" for one in layers if one.not_judged]
    return "; ".join(dict.fromkeys(remarks)) if remarks and not detail else detail
