"""Scoring: policies, the layers of a check, statistics, and the verdict. Fails closed: missing is never a pass."""

from .costs import costs_document
from .defects import defects
from .doubts import doubts_of
from .policy import Policy, document_for, load_policy, policy_from_text, policy_names
from .policy_text import PolicyError
from .score import read_verdict, score_run, verdict_json
from .verdict import EXIT_CODES, Coverage, Economics, Finding, Interval, Reliability, Verdict

__all__ = [
    "EXIT_CODES",
    "Coverage",
    "Economics",
    "Finding",
    "Interval",
    "Policy",
    "PolicyError",
    "Reliability",
    "Verdict",
    "costs_document",
    "defects",
    "document_for",
    "doubts_of",
    "load_policy",
    "policy_from_text",
    "policy_names",
    "read_verdict",
    "score_run",
    "verdict_json",
]
