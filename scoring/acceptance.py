"""What an accepted run says to whoever takes nodes into it: that it is whole, and which nodes are good partners."""

from ..evidence import Run, RunError
from .defects import defects
from .scope import nodes_of
from .score import score_run
from .verdict import Verdict
from .words import several


def good_partners(run: Run) -> tuple[str, ...]:
    """The nodes of an accepted run that newcomers can be measured with, those that did best with all partners first.

    Raises RunError for a run that is not whole or not finished: what is not evidence is not gone on from.
    """
    problems = [*run.problems, *defects(run)]
    if problems:
        told = several([str(problem) for problem in problems], 2)[:400]
        raise RunError(f"{run.path} is not whole, so nothing can join it: {told}")
    return _best_first(run, score_run(run))


def _best_first(run: Run, verdict: Verdict) -> tuple[str, ...]:
    out = {node for name in verdict.exclude for node in nodes_of(name)}
    able = {
        finding.subject: float(finding.observed)
        for finding in verdict.findings
        if finding.check == "pairs.nodes" and finding.result == "pass" and isinstance(finding.observed, float)
    }
    stays = (node.node for node in run.header.promised if node.node not in out)
    return tuple(sorted(stays, key=lambda node: -able.get(node, 0.0)))
