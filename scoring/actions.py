"""What to do about a finding: what would make it pass, how to measure it, what to say to the provider."""

from string import Template

import msgspec

from .findings import INTERMITTENT
from .policy_model import Check
from .verdict import Finding
from .words import figure

# How to measure what was not measured, by the reason that its record gives.
_HOW_BY_REASON = {
    "skipped_by_profile": "Run a profile that measures it, without --only.",
    "unsupported": "This device or platform cannot do it: judge by a policy that does not ask for it.",
    "timeout": "Run it again; if its deadline passes again, its log in logs/ says how far it came.",
    "died": "Run it again; its log in logs/ holds what the ranks printed last.",
    "raised": "Its log in logs/ holds the exception; run it again once that is mended.",
    "parse_error": "The tool's output could not be read: its log in logs/ holds it.",
    "not_finite": "A sample was NaN or infinite: repeat the trial, and suspect the device if it happens again.",
    "closed_to_tenant": "Ask the provider for access, or for the figure itself.",
    "no_reference": "Give the value, with its source, in a file of your own (--references), or your own number in a "
    "policy of yours (layers: contract).",
    "not_returned": "Run it again: nothing was recorded for it.",
    "interrupted": "Go on with the run: hwlottery run --resume RUN.",
    "too_short": "Run it for longer.",
    "too_few": "Run a profile with more iterations or repeats of it.",
    "undecided": "Measure it with a node that is known good.",
    "inflated": "Repeat the pair with NCCL_ALGO=Ring, and judge three nodes and more by that.",
    "no_power": "Measure it again on every one of them, and hold it against a reference or your own number.",
    "incomplete": "Copy the run directory again from where it was made, or finish it with --resume, or run again.",
}

_HOW_BESIDE_BASELINE = {
    "no_reference": "Run the baseline's own profile, or take a baseline that has measured this hardware.",
    "no_power": "Measure it again with more samples: the difference is within noise.",
}


def with_advice(finding: Finding, check: Check) -> Finding:
    """The finding with its action and, where it failed or warns, the sentence to send: its own, or the check's."""
    if finding.result == "pass":
        return finding
    if finding.result == "not_measured":
        return msgspec.structs.replace(finding, action=finding.action or _how_to_measure(finding, check))
    action = finding.action or _to_pass(finding, check)
    return msgspec.structs.replace(finding, action=action, statement=_statement(finding, check))


def _statement(finding: Finding, check: Check) -> str:
    if finding.detail.startswith(INTERMITTENT):
        return f"{finding.subject} comes and goes in {check.check}: {finding.detail.removeprefix(INTERMITTENT)}."
    return finding.statement or filled(check.statement, finding) or _plainly(finding)


def _how_to_measure(finding: Finding, check: Check) -> str:
    if finding.reason == "tool_missing":
        return f"Install what is missing, then run it again: {finding.detail}"
    if finding.reason == "not_retested":
        return f"Retest {finding.subject}: only an outlier that is seen again fails, and none is cleared unseen."
    if finding.layer == "baseline" and finding.reason in _HOW_BESIDE_BASELINE:
        return _HOW_BESIDE_BASELINE[finding.reason]
    by_reason = _HOW_BY_REASON.get(finding.reason, "Run it again.")
    return " ".join(part for part in (filled(check.how, finding), by_reason) if part)


def _to_pass(finding: Finding, check: Check) -> str:
    """What would make it pass; an outlier seen once is measured again before anybody is blamed."""
    if finding.detail.startswith(INTERMITTENT):
        return f"Repeat it on {finding.subject} several times, warm and cold: a fault that comes and goes stays one."
    if finding.layer == "peers" and finding.result == "warn" and finding.metric:
        return f"Retest {finding.subject}: only an outlier that is seen again fails."
    action = filled(check.action, finding)
    wanted = f"To pass: {finding.expected}." if finding.expected else ""
    return " ".join(part for part in (action, wanted) if part)


def filled(template: str, finding: Finding) -> str:
    """A policy's text with $subject, $node, $observed, $expected and $metric put in."""
    names = {
        "subject": finding.subject,
        "node": finding.excludes or finding.subject.split("/")[0],
        "observed": figure(finding.observed, finding.unit),
        "expected": finding.expected,
        "metric": finding.metric or finding.check,
    }
    return Template(template).safe_substitute(names)


def _plainly(finding: Finding) -> str:
    return (
        f"{finding.subject}: {finding.check} is {figure(finding.observed, finding.unit)}, expected {finding.expected}."
    )
