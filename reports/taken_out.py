"""What stands on nodes that the verdict takes out, counted apart from what remains."""

from collections.abc import Iterable, Sequence

from ..scoring.out_of_use import nodes_out
from ..scoring.verdict import Finding, Verdict
from .finding_evidence import nodes_of
from .plain_text import listed, natural


def on_taken_out(each: Finding, verdict: Verdict) -> tuple[str, ...]:
    """The nodes behind a finding that the verdict takes out; none for a finding on what remains."""
    out = nodes_out(verdict.exclude)
    return tuple(node for node in nodes_of(each.subject) if node in out)


def parted(findings: Iterable[Finding], verdict: Verdict) -> tuple[list[Finding], list[Finding]]:
    """Findings on what remains, and those on nodes that are taken out."""
    remaining: list[Finding] = []
    out: list[Finding] = []
    for each in findings:
        (out if on_taken_out(each, verdict) else remaining).append(each)
    return remaining, out


def out_nodes(out: Sequence[Finding], verdict: Verdict) -> str:
    """The names of the nodes that are taken out and that findings stand on."""
    return listed(sorted({node for each in out for node in on_taken_out(each, verdict)}, key=natural), 4)


def out_words(out: Sequence[Finding], verdict: Verdict) -> str:
    """How many more there are on nodes that are taken out: 10 more on excluded n05. Nothing where there is none."""
    return f"{len(out):,} more on excluded {out_nodes(out, verdict)}" if out else ""
