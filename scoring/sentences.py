"""The verdict in plain words: its sentence, the reasons, what was not judged, how sure, and what stands first."""

from collections.abc import Collection, Iterable, Sequence

from ..evidence import RunHeader
from .decision import Decision
from .joined import told_when
from .out_of_use import out_in_words
from .policy import Policy, load_policy, policy_names
from .policy_model import Check
from .statistics import node_days_without_failure
from .verdict import Confidence, Coverage, Finding, Reliability
from .words import counted, several, three_digits

MOST_REASONS = 5
# A failure rate is known well where as many node-days as show the worst published rate (Meta's RSC-1) at 95 %, and
# fairly at 80 %, were observed.
_WORST_PUBLISHED_RATE = 6.5e-3

_REASON_WORDS = {
    "closed_to_tenant": "closed to the tenant",
    "no_reference": "no reference for this kind of accelerator",
    "tool_missing": "a tool is missing",
    "skipped_by_profile": "the profile leaves it out",
    "unsupported": "not supported here",
    "timeout": "the deadline passed",
    "died": "a rank or node died",
    "raised": "the probe raised an exception",
    "not_finite": "a sample was not finite",
    "not_returned": "nothing was recorded",
    "interrupted": "the run was stopped first",
    "parse_error": "the output could not be read",
    "too_short": "too short",
    "too_few": "too few samples",
    "undecided": "nothing tells which of several it is",
    "incomplete": "the evidence is not whole",
    "not_retested": "bad once, and not retested",
    "inflated": "more than the wire carries, so no figure of it",
    "no_power": "noise or too few peers hide it",
}


def sentence(decision: Decision, header: RunHeader, policy: Policy, covered: Coverage) -> str:
    """The verdict in one sentence."""
    nodes = counted(len(header.promised), "node")
    if decision.word == "GO":
        return f"Fit for training on {nodes}." if policy.signable else f"All that {policy.name} asks passed on {nodes}."
    if decision.word == "CONDITIONAL":
        fit = "Fit for training" if policy.signable else f"All that {policy.name} asks passed"
        return f"{fit} without {len(decision.out)} of {nodes}: {out_in_words(decision.excluded)}."
    if decision.word == "INCONCLUSIVE":
        return _not_decided(decision, covered)
    if decision.fatal:
        checks = tuple(dict.fromkeys(finding.check for finding in decision.fatal))
        return f"Not fit as it stands: {several(checks, 3)} failed, and taking out a node does not mend it."
    most = decision.most_excluded
    allowed = f"at most {most} may be" if most else "none of so few may be"
    return f"Not fit as it stands: {len(decision.out)} of {nodes} would have to be taken out, {allowed}."


def _not_decided(decision: Decision, covered: Coverage) -> str:
    """What of the required values was measured, with the same counts as coverage has."""
    required = decision.required_on_the_rest
    if not required:
        return "Not decided: the policy requires nothing of what remains of this run."
    if decision.proves_nothing:
        return "Not decided: no figure of speed that the policy requires concerns this run."
    measured, gone = required - len(decision.missing), covered.required - required
    on_the_rest = "on what remains " if decision.excluded else ""
    said = f"Not decided: {measured:,} of {counted(required, 'required value')} {on_the_rest}"
    said += "was measured" if measured == 1 else "were measured"
    if gone:
        said += f"; {gone:,} more {'is' if gone == 1 else 'are'} on excluded {out_in_words(decision.excluded)}"
    return said + "."


def reasons(decision: Decision, remaining: Sequence[Finding]) -> tuple[str, ...]:
    """At most five lines, what decides first: failures that nothing cures, what is missing on what remains, failures of
    nodes that can be taken out, then warnings. Where too many nodes fail, they decide."""
    lines = [finding.statement for finding in decision.fatal]
    by_node = [_of_node(node, decision.curable) for node in decision.excluded]
    missing = grouped(decision.missing, "not measured")
    if decision.proves_nothing:
        missing.append("No figure of matmul, all-reduce or burn-in that the policy requires concerns this run.")
    lines += [*missing, *by_node] if decision.word == "INCONCLUSIVE" else [*by_node, *missing]
    if len(lines) < MOST_REASONS:
        lines += _warnings(remaining)
    lines = list(dict.fromkeys(lines))
    if len(lines) > MOST_REASONS:
        lines = [
            *lines[: MOST_REASONS - 1],
            f"And {counted(len(lines) - MOST_REASONS + 1, 'more line')} in the findings.",
        ]
    return tuple(lines)


def _of_node(node: str, curable: Iterable[Finding]) -> str:
    said = [finding.statement for finding in curable if finding.excludes == node]
    more = len(dict.fromkeys(said)) - 1
    return said[0] if not more else f"{said[0]} (and {more} more on {node})"


def _warnings(findings: Iterable[Finding]) -> list[str]:
    by_check: dict[str, list[Finding]] = {}
    for finding in findings:
        if finding.result == "warn":
            by_check.setdefault(finding.check, []).append(finding)
    return [
        found[0].statement if len(found) == 1 else f"{found[0].statement} (and {len(found) - 1} alike)"
        for found in by_check.values()
    ]


def grouped(findings: Iterable[Finding], what: str) -> list[str]:
    """Findings that were not measured, a line for each check and reason."""
    groups: dict[tuple[str, str], list[Finding]] = {}
    for finding in findings:
        groups.setdefault((finding.check, finding.reason), []).append(finding)
    lines = []
    for (check, reason), found in groups.items():
        why = _REASON_WORDS.get(reason, reason)
        subjects = several([finding.subject for finding in found], 3)
        told = f" ({found[0].detail})" if found[0].detail and len(found[0].detail) <= 160 else ""
        lines.append(f"{check} {what} on {subjects}: {why}{told}.")
    return lines


def not_judged(
    findings: Sequence[Finding], policy: Policy, concerned: Collection[str], *, with_baseline: bool
) -> tuple[str, ...]:  # fmt: skip
    """What this verdict says nothing of: unmeasured and not required, too few peers, no baseline, and checks whose
    conditions nothing in this run fits (`concerned` are the checks that had a subject)."""
    lines = grouped((f for f in findings if f.result == "not_measured" and not f.required), "not judged")
    few = {f.check: f.detail for f in findings if f.result == "pass" and f.detail.startswith("not judged")}
    lines += [f"{check} {detail}." for check, detail in few.items()]
    if not with_baseline and any(check.layers.baseline for check in policy.checks):
        lines.append("Change since the last accepted run: no baseline was given.")
    lines += _of_nobody(check for check in policy.checks if check.check not in concerned)
    return tuple(lines)


def _of_nobody(checks: Iterable[Check]) -> list[str]:
    """Checks that this run has no subject for, each named, a line for each kind of subject and conditions."""
    groups: dict[tuple[str, str], list[str]] = {}
    for check in checks:
        conditions = [f"for {check.device} only"] if check.device else []
        conditions += [f"from {counted(check.nodes_at_least, 'node')} on"] if check.nodes_at_least > 1 else []
        conditions += [f"from {counted(check.ranks_at_least, 'rank')} on"] if check.ranks_at_least > 1 else []
        conditions += ["beside a baseline"] if check.beside_baseline else []
        groups.setdefault((check.each, ", ".join(conditions)), []).append(check.check)
    return [
        f"{', '.join(names)} {'concerns' if len(names) == 1 else 'concern'} no {each} of this run"
        + (f" ({told})." if told else ".")
        for (each, told), names in groups.items()
    ]


# Shorter runs can be steady and say nothing of a machine that is warm: their speed is known fairly at best.
_LONG_ENOUGH_S = 3600.0
_OF_SPEED = ("compute", "memory", "fabric", "storage", "burn_in")
_SPEED_UNITS = ("TFLOPS", "GB/s", "s", "tokens/s", "share")


def confidence(findings: Sequence[Finding], reliability: Reliability, seconds: float) -> str:
    """How sure: of speed by the samples behind the figures that were judged and by the run's length, of failures by the
    node-days observed."""
    judged = [f for f in findings if f.category in _OF_SPEED and f.unit in _SPEED_UNITS and f.layer]
    graded = [finding.confidence for finding in judged if finding.result != "not_measured"]
    days = f"{three_digits(reliability.node_days)} node-days"
    speed = f"{_middle(graded, seconds)} for speed" if graded else "none for speed: no speed was judged"
    return f"{speed}, {_of_failures(reliability.node_days)} for failures: {days}"


def _middle(graded: Sequence[Confidence], seconds: float) -> Confidence:
    """The grade that at least nine of ten figures have; never high after a short run."""
    high = sum(grade == "high" for grade in graded) >= 0.9 * len(graded)
    if high and seconds >= _LONG_ENOUGH_S:
        return "high"
    return "medium" if sum(grade != "low" for grade in graded) >= 0.9 * len(graded) else "low"


def _of_failures(node_days: float) -> Confidence:
    if node_days >= node_days_without_failure(_WORST_PUBLISHED_RATE, 0.95):
        return "high"
    return "medium" if node_days >= node_days_without_failure(_WORST_PUBLISHED_RATE, 0.80) else "low"


def caveats(header: RunHeader, policy: Policy) -> tuple[str, ...]:
    """The page's first lines, where they apply."""
    lines = [told] if (told := told_when(header)) else []
    if header.simulated:
        lines.append("Simulated: no hardware was measured.")
    if header.device == "cpu":
        lines.append("This was no GPU cluster: measured on CPUs.")
    if header.only:
        lines.append(f"Not for signing: only {several(header.only)} ran (--only), the rest was not measured.")
    if policy.name in policy_names() and policy.sha256 != load_policy(policy.name).sha256:
        lines.append(
            f"The policy calls itself {policy.name} and is not the one that comes with this hwlottery: "
            f"SHA-256 {policy.sha256[:12]}."
        )
    if not policy.signable:
        lines.append(f"Not for signing: {policy.purpose or f'the policy {policy.name} does not decide.'}")
    return tuple(lines)
