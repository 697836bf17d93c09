"""What was judged of the whole cluster with nodes in it that are taken out: judged over what remains where that can be
computed, and said to be with them in where it cannot."""

from collections.abc import Iterable

import msgspec

from .actions import with_advice
from .derived import Figures, straggler_loss
from .findings import resulting
from .layers import by_contract
from .policy_model import Check
from .scope import Target, nodes_of
from .verdict import Finding
from .words import figure, natural, several


def over_the_rest(
    findings: Iterable[Finding], checks: Iterable[Check], figures: Figures, out: frozenset[str]
) -> tuple[Finding, ...]:
    """The findings, those of the whole cluster that did not pass as they are without the nodes that are out."""
    by_name = {check.check: check for check in checks}
    return tuple(
        _over_the_rest(each, by_name[each.check], figures, out)
        if out and each.subject == "cluster" and each.result in ("fail", "warn")
        else each
        for each in findings
    )


def _over_the_rest(each: Finding, check: Check, figures: Figures, out: frozenset[str]) -> Finding:
    plans = [figures.measured.plans[trial] for trial in each.evidence if trial in figures.measured.plans]
    inside = {node for plan in plans for rank in plan.ranks for node in nodes_of(rank)} & out
    if not inside:
        return each
    named = several(sorted(inside, key=natural), 3)
    if each.metric == "burn_in.straggler_loss" and each.layer == "contract":
        return _stragglers(each, check, figures, out, named)
    return _with_them_in(each, named)


def _with_them_in(each: Finding, named: str) -> Finding:
    statement = f"{each.statement.removesuffix('.')} (with {named} in)." if each.statement else ""
    detail = "; ".join(part for part in (each.detail, f"with {named} in") if part)
    return msgspec.structs.replace(each, statement=statement, detail=detail)


def _stragglers(each: Finding, check: Check, figures: Figures, out: frozenset[str], named: str) -> Finding:
    """Nobody waits any more for who is out."""
    ranks = figures.measured.subjects("burn_in.compute")
    loss = straggler_loss(figures, [rank for rank in ranks if out.isdisjoint(nodes_of(rank))])
    if loss is None or check.layers.contract is None:
        return _with_them_in(each, named)
    judged = by_contract(loss, check.layers.contract, each.unit)
    plain = msgspec.structs.replace(
        each, observed=loss, expected=judged.expected, threshold=judged.threshold, action="", statement="",
        detail=f"without {named}; {figure(each.observed, each.unit)} with {named} in",
    )  # fmt: skip
    cluster = Target(subject="cluster", nodes=())
    return with_advice(resulting(check, plain, cluster, judged.result, figures.facts), check)
