"""The verdict in plain words: its sentence, the reasons, what was not judged, how sure, and what stands first."""

from collections.abc import Iterable, Sequence

from ..evidence import RunHeader
from .decision import Decision, nodes_lost
from .policy import Policy
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
    "undecided": "nothing tells which of several it is",
    "incomplete": "the evidence is not whole",
}


def sentence(decision: Decision, header: RunHeader, policy: Policy, covered: Coverage) -> str:
    """The verdict in one sentence."""
    nodes = counted(len(header.promised), "node")
    if decision.word == "GO":
        return f"Fit for training on {nodes}." if policy.signable else f"All that {policy.name} asks passed on {nodes}."
    if decision.word == "CONDITIONAL":
        fit = "Fit for training" if policy.signable else f"All that {policy.name} asks passed"
        return f"{fit} without {_left_out(decision.excluded, nodes)}."
    if decision.word == "INCONCLUSIVE":
        return f"Not decided: {len(decision.missing):,} of {covered.required:,} required results were not measured."
    if decision.fatal:
        checks = tuple(dict.fromkeys(finding.check for finding in decision.fatal))
        return f"Not fit as it stands: {several(checks, 3)} failed, and taking out a node does not mend it."
    most = decision.most_excluded
    allowed = f"at most {most} may be" if most else "none of so few may be"
    return f"Not fit as it stands: {nodes_lost(decision.excluded)} of {nodes} would have to be taken out, {allowed}."


def _left_out(excluded: Sequence[str], nodes: str) -> str:
    """'1 of 4 nodes: n02', 'the link n01~n03', or both."""
    links = [name for name in excluded if "~" in name]
    rest = [name for name in excluded if name not in links]
    parts = [f"{len(rest)} of {nodes}: {several(rest)}"] if rest else []
    parts += [f"the {'link' if len(links) == 1 else 'links'} {several(links)}"] if links else []
    return ", and without ".join(parts)


def reasons(decision: Decision, findings: Sequence[Finding]) -> tuple[str, ...]:
    """At most five lines, the weightiest first: failures by node, what is missing, then warnings."""
    lines = [finding.statement for finding in decision.fatal]
    lines += [_of_node(node, decision.curable) for node in decision.excluded]
    lines += grouped(decision.missing, "not measured")
    if len(lines) < MOST_REASONS:
        lines += _warnings(findings)
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


def not_judged(findings: Sequence[Finding], policy: Policy, *, with_baseline: bool) -> tuple[str, ...]:
    """What this verdict says nothing of: unmeasured and not required, too few peers, no baseline."""
    lines = grouped((f for f in findings if f.result == "not_measured" and not f.required), "not judged")
    few = {f.check: f.detail for f in findings if f.result == "pass" and f.detail.startswith("not judged among peers")}
    lines += [f"{check} {detail}." for check, detail in few.items()]
    if not with_baseline and any(check.layers.baseline for check in policy.checks):
        lines.append("Change since the last accepted run: no baseline was given.")
    return tuple(lines)


def confidence(findings: Sequence[Finding], reliability: Reliability) -> str:
    """How sure: of speed by the samples behind the required figures, of failures by the node-days observed."""
    graded = [finding.confidence for finding in findings if finding.metric and finding.result != "not_measured"]
    speed = _middle(graded)
    days = f"{three_digits(reliability.node_days)} node-days"
    return f"{speed} for speed, {_of_failures(reliability.node_days)} for failures: {days}"


def _middle(graded: Sequence[Confidence]) -> Confidence:
    """The grade that at least nine of ten figures have."""
    if not graded:
        return "low"
    if sum(grade == "high" for grade in graded) >= 0.9 * len(graded):
        return "high"
    return "medium" if sum(grade != "low" for grade in graded) >= 0.9 * len(graded) else "low"


def _of_failures(node_days: float) -> Confidence:
    if node_days >= node_days_without_failure(_WORST_PUBLISHED_RATE, 0.95):
        return "high"
    return "medium" if node_days >= node_days_without_failure(_WORST_PUBLISHED_RATE, 0.80) else "low"


def caveats(header: RunHeader, policy: Policy) -> tuple[str, ...]:
    """The page's first lines, where they apply."""
    lines = []
    if header.simulated:
        lines.append("Simulated: no hardware was measured.")
    if header.device == "cpu":
        lines.append("This was no GPU cluster: measured on CPUs.")
    if not policy.signable:
        lines.append(f"Not for signing: {policy.purpose or f'the policy {policy.name} does not decide.'}")
    return tuple(lines)
