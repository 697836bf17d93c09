"""The time between failures that was promised: exact Poisson bounds decide, and nothing is decided before they can."""

import msgspec

from .derived import Figures
from .findings import new_finding
from .happenings import Happenings
from .policy_model import Check
from .reliability import failures_seen, node_days
from .scope import Target
from .statistics import chance_of_showing, lower_rate, node_days_to_show, upper_rate
from .verdict import Finding, Result
from .words import counted, figure, percent, three_digits

UNIT = "node-days"
CONFIDENCE = 0.95


def judge_mtbf(check: Check, target: Target, figures: Figures, happenings: Happenings) -> Finding:
    """Passes where the upper bound of the failure rate (95 %) is at most the promised one, fails where the lower bound
    is above it; between them it is not measured, and the node-days that would settle it are said."""
    assert check.layers.contract is not None
    promised = check.layers.contract.at_least
    assert promised is not None
    failures, days = failures_seen(happenings.run), node_days(happenings.run)
    finding = msgspec.structs.replace(
        new_finding(check, target, "not_measured", figures.facts),
        layer="contract",
        unit=UNIT,
        expected=f"at least {figure(promised, UNIT)} between failures",
        threshold=promised,
    )
    if days <= 0:
        return msgspec.structs.replace(finding, reason="not_returned", detail="no node-days were observed")
    low, high = lower_rate(failures, days, CONFIDENCE), upper_rate(failures, days, CONFIDENCE)
    seen = f"{counted(failures, 'failure')} in {three_digits(days)} node-days"
    result: Result = "pass" if high <= 1 / promised else "fail" if low > 1 / promised else "not_measured"
    if result == "not_measured":
        needed = _enough(promised, failures, days)
        return msgspec.structs.replace(finding, reason="no_power", detail=f"{seen}: {needed}")
    judged = new_finding(check, target, result, figures.facts)
    sides = f"at least {figure(1 / high, UNIT)}" if result == "pass" else f"at most {figure(1 / low, UNIT)}"
    return msgspec.structs.replace(
        finding,
        result=judged.result,
        required=judged.required,
        observed=float(f"{1 / (high if result == 'pass' else low):.6g}"),
        detail=f"{seen}: {sides} between failures (95 %)",
        confidence="high",
    )


def _enough(promised: float, failures: int, days: float) -> str:
    """How many node-days would show it, and how likely a cluster of twice the promise shows it in them."""
    needed = node_days_to_show(1 / promised, failures, CONFIDENCE)
    chance = chance_of_showing(1 / promised, 1 / (2 * promised), needed, CONFIDENCE)
    more = "no failure" if failures == 0 else "no further one"
    total, left = three_digits(round(needed)), three_digits(round(needed - days))
    return (
        f"{total} node-days with {more} would show it (95 %), {left} more; nodes twice as good as promised pass in so "
        f"many with a chance of {percent(round(chance, 2))}"
    )
