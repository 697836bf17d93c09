"""From a policy's checks to findings: each check on each promised subject, judged by its layers."""

from collections.abc import Callable, Iterator
from functools import partial
from operator import itemgetter

import msgspec

from ..evidence import metric
from ..evidence.records import Params
from ..references import Accelerator, Fabric
from .asking import Wants
from .attempts import number_to_judge, other_attempts, that_decide
from .baselines import BaselineFigures
from .case import Case
from .comparing import Comparing
from .composite import Shares
from .derived import Figures
from .fabrics import between_nodes, fabric_of
from .fact_checks import judge_facts
from .facts import the_one_kind
from .findings import (
    INTERMITTENT,
    NOT_JUDGED,
    RANKS,
    Standing,
    badness,
    confidence_of,
    resulting,
)
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
        self._wants = Wants(figures)
        self._peers = PeerGroups(figures, self._wants)
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
        case = Case(check, target, metric(check.metric or ""), self.figures, self._peers.place(check, target))
        values, gaps = self._wants.of(check, target)
        judged = [self._judged(case, value) for value in values]
        judged += [_as_it_is(self._never_measured(case, gap)) for gap in gaps]
        if self.figures.header.joins:
            judged.reverse()  # of equals, the one that was measured last
        return min(judged, key=_rank)[1]()

    def _never_measured(self, case: Case, gap: Params) -> Finding:
        """A value that the check asks for and nobody recorded."""
        self._keep_share(case.check, case.target.subject, None)
        described = params_in_words(gap)
        detail = case.target.unknown or f"no value was recorded{' for ' + described if described else ''}"
        return msgspec.structs.replace(
            case.blank, params=gap, reason="not_returned", detail=detail, expected="measured"
        )  # fmt: skip

    def _judged(self, case: Case, value: Value) -> "_Weighed":
        """One value against all layers of the check; the worst layer speaks."""
        check = case.check
        if value.value is None and not (check.any_attempt and value.earlier):
            return _as_it_is(self._value_missing(case, value))
        if value.value is not None and value.samples < check.samples_at_least:
            return _as_it_is(self._too_few(case, value))
        number = number_to_judge(check, case.described, value)
        layers = that_decide(self._layers(case, value, number))
        worst = min(layers, key=badness, default=None)
        if value.value is None and (worst is None or worst.result != "fail"):
            return _as_it_is(self._value_missing(case, value))
        if check.layers.reference is not None:
            share = next((one.share for one in layers if one.share is not None), None)
            self._keep_share(check, case.target.subject, share)
        stands = case.standing(worst.result if worst else "pass", worst.reason if worst else "")
        told = partial(self._told, case, value, number, layers, worst, stands)
        # What has earlier attempts may yet turn out to come and go.
        return _as_it_is(told()) if value.earlier else (RANKS[stands.result], told)

    def _told(  # noqa: PLR0917  # a value with all that was found of it
        self, case: Case, value: Value, number: float, layers: list[Judged], worst: Judged | None, stands: Standing
    ) -> Finding:
        """The finding that speaks for its subject. Made for one value a subject: a large run has a hundred thousand."""
        check, described = case.check, case.described
        finding = Finding(
            check=check.check,
            category=check.category,
            subject=case.target.subject,
            metric=described.name,
            unit=described.unit,
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
        return self._where(self._intermittent(case, finding, value), value)

    def _where(self, finding: Finding, value: Value) -> Finding:
        """Of a figure of the whole cluster, over which nodes it was taken, where not all were there at one time."""
        if finding.subject != "cluster" or not self.figures.header.joins:
            return finding
        plans = [self.figures.measured.plans[trial] for trial in value.trials if trial in self.figures.measured.plans]
        nodes = sorted({node for plan in plans for rank in plan.ranks for node in nodes_of(rank)})
        over = f"over {several(nodes, 8)}"
        return msgspec.structs.replace(finding, detail=f"{finding.detail}; {over}" if finding.detail else over)

    def _value_missing(self, case: Case, value: Value) -> Finding:
        self._keep_share(case.check, case.target.subject, None)
        return msgspec.structs.replace(
            case.blank,
            params=value.params,
            evidence=value.trials[:MOST_TRIALS],
            first_observed=value.earlier[0] if value.earlier else None,
            reason=value.reason,
            detail=value.detail,
            expected="measured",
        )

    def _too_few(self, case: Case, value: Value) -> Finding:
        """What rests on fewer samples than the policy asks for decides nothing."""
        self._keep_share(case.check, case.target.subject, None)
        expected = f"at least {counted(case.check.samples_at_least, 'sample')}"
        detail = f"it rests on {counted(value.samples, 'sample')}"
        return msgspec.structs.replace(case.blank, reason="too_few", detail=detail, expected=expected)

    def _layers(self, case: Case, value: Value, number: float) -> list[Judged]:
        check, target, described, layers = case.check, case.target, case.described, case.check.layers
        found = []
        if layers.contract is not None:
            found.append(by_contract(number, layers.contract, described.unit))
        if layers.reference is not None:
            found.append(by_reference(number, self._comparison(case, value), described))
        if layers.maximum is not None:
            fact, best = maximum_of(self.figures.facts, target.subject, described.name)
            found.append(by_maximum(number, best, fact, described))
        if layers.peers is not None:
            group = self._peers.of(case.peers, value)
            others = other_attempts(value, number) if value.earlier else ()
            found.append(by_peers(number, layers.peers, group, described, others=others))
        if layers.baseline is not None and self.baseline is not None:
            found.append(self._by_baseline(check, layers.baseline, self.baseline, target, value, number))
        return found

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

    def _comparison(self, case: Case, value: Value) -> Comparison:
        check = case.check
        assert check.layers.reference is not None
        hardware, why = self._hardware(check, case.target)
        key = (check.check, hardware.key if hardware else why, params_key(value.params))
        if key not in self._comparisons:
            references = self.figures.facts.references
            found = comparison(check.layers.reference, hardware, case.described, value.params, references)
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

    def _intermittent(self, case: Case, finding: Finding, value: Value) -> Finding:
        """Attempts that disagree are at least a warning: a fault that comes and goes is one."""
        if finding.result != "pass" or not value.earlier:
            return finding
        bad = [number for number in value.earlier if self._is_bad(case, value, number)]
        if not bad:
            return finding
        when, unit = "first" if bad[0] == value.earlier[0] else "once", case.described.unit
        shown = f"{when} {figure(bad[0], unit)}, in the retest {figure(value.value, unit)}"
        finding = resulting(case.check, finding, case.target, "warn", self.figures.facts)
        return msgspec.structs.replace(finding, detail=INTERMITTENT + shown, confidence="medium")

    def _is_bad(self, case: Case, value: Value, number: float) -> bool:
        """Whether an earlier attempt would have warned or failed, were it the last, or been an outlier."""
        return any(one.outlier or one.result in ("warn", "fail") for one in self._layers(case, value, number))


_Weighed = tuple[int, Callable[[], Finding]]  # the smaller the worse, and the finding once it is wanted
_rank = itemgetter(0)


def _as_it_is(finding: Finding) -> _Weighed:
    return badness(finding), lambda: finding


def _with_remarks(detail: str, layers: list[Judged]) -> str:
    remarks = [f"{NOT_JUDGED[one.layer]}: {one.not_judged}" for one in layers if one.not_judged]
    return "; ".join(dict.fromkeys(remarks)) if remarks and not detail else detail
