"""From findings to the verdict word, in one fixed order."""

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from ..evidence import RunHeader
from .out_of_use import nodes_out
from .policy_model import SPEED_KINDS
from .scope import nodes_of
from .verdict import Coverage, Finding, VerdictWord

# From this many nodes on, one may be taken out whatever the share says.
NODES_FOR_ONE_EXCLUSION = 4


class Decision(Struct, frozen=True, kw_only=True):
    """The word, and what it rests on. `excluded` are the nodes and links that would have to be taken out, whatever the
    word; `out` the nodes that this costs."""

    word: VerdictWord
    excluded: tuple[str, ...]
    most_excluded: int
    fatal: tuple[Finding, ...]  # required, failed, and taking out a node does not cure it
    curable: tuple[Finding, ...]  # required, failed, cured by taking out a node
    missing: tuple[Finding, ...]  # required and not measured on what remains
    required_on_the_rest: int  # required results on what remains, measured or not
    proves_nothing: bool = False  # to be signed, and no figure of speed is required of what remains

    @property
    def too_many(self) -> bool:
        """Whether more nodes would have to be taken out than the policy allows."""
        return len(self.out) > self.most_excluded

    @property
    def out(self) -> frozenset[str]:
        """The nodes that nobody can use then."""
        return nodes_out(self.excluded)


def decide(
    findings: Sequence[Finding], header: RunHeader, exclude_at_most: float, *, to_sign: bool = False
) -> Decision:  # fmt: skip
    """NO_GO, else INCONCLUSIVE, else CONDITIONAL, else GO. What is to be signed must have shown some speed."""
    failed = [finding for finding in findings if finding.required and finding.result == "fail"]
    fatal = tuple(finding for finding in failed if finding.excludes is None)
    curable = tuple(finding for finding in failed if finding.excludes is not None)
    excluded = tuple(sorted({finding.excludes for finding in curable if finding.excludes is not None}))
    most = most_excluded(len(header.promised), exclude_at_most)
    unmeasured = [finding for finding in findings if finding.required and finding.result == "not_measured"]
    out = nodes_out(excluded)
    missing = tuple(_on_the_rest(unmeasured, out))
    rest = list(_on_the_rest((finding for finding in findings if finding.required), out))
    proves_nothing = to_sign and not any((finding.metric or "").startswith(SPEED_KINDS) for finding in rest)
    word: VerdictWord
    if fatal or len(out) > most:
        word = "NO_GO"
    elif missing or not rest or proves_nothing:
        word = "INCONCLUSIVE"
    else:
        word = "CONDITIONAL" if excluded else "GO"
    return Decision(
        word=word,
        excluded=excluded,
        most_excluded=most,
        fatal=fatal,
        curable=curable,
        missing=missing,
        required_on_the_rest=len(rest),
        proves_nothing=proves_nothing,
    )


def most_excluded(nodes: int, share: float) -> int:
    """How many nodes may be taken out: a share, at least one where there are four or more, never any of fewer."""
    if nodes < NODES_FOR_ONE_EXCLUSION:
        return 0
    return max(1, int(nodes * share + 1e-9)) if share > 0 else 0


def remaining(findings: Iterable[Finding], decision: Decision) -> list[Finding]:
    """The findings on what is left when the excluded nodes are taken out."""
    return list(_on_the_rest(findings, decision.out))


def _on_the_rest(findings: Iterable[Finding], out: frozenset[str]) -> Iterator[Finding]:
    if not out:
        yield from findings
        return
    for finding in findings:
        if out.isdisjoint(nodes_of(finding.subject)):
            yield finding


def coverage(findings: Iterable[Finding]) -> Coverage:
    """How much of what is required was measured, and how much the tenant could not see."""
    required = measured = closed = 0
    for finding in findings:
        required += finding.required
        measured += finding.required and finding.result != "not_measured"
        closed += finding.result == "not_measured" and finding.reason == "closed_to_tenant"
    return Coverage(required=required, measured=measured, closed=closed)
