"""Money and time in sentences, for the page and the terminal."""

from ..scoring.verdict import Economics, Interval
from .numbers import NOTHING, dollars, figure, long_time
from .plain_text import printable


def training_run(money: Economics) -> str:
    """The stated training run in a sentence, or how to state one."""
    if money.run_flops is None:
        return "Give --run-flops to report or score for the time and cost of a training run."
    work = f"A training run of {money.run_flops:.3g} FLOPs"
    if money.run_s is None or money.run_s.value is None:
        return f"{work} cannot be told. Missing: {printable('; '.join(money.missing), 600) or 'what gets done'}."
    took = f"takes {_of_time(money.run_s)}"
    cost = f" and costs {_of_money(money.run_usd)}" if money.run_usd else ""
    return f"{work} {took}{cost}."


def cost_of_the_test(money: Economics) -> str:
    """What the test itself took, and cost."""
    if money.test_node_hours is None:
        return ""
    paid = f", {dollars(money.test_usd)} of rent" if money.test_usd is not None else ""
    return f"The test itself took {figure(money.test_node_hours)} node-hours{paid}."


def _of_time(shown: Interval) -> str:
    ends = "" if shown.low is None or shown.high is None else f" [{long_time(shown.low)} to {long_time(shown.high)}]"
    return f"{NOTHING if shown.value is None else long_time(shown.value)}{ends}"


def _of_money(shown: Interval) -> str:
    ends = "" if shown.low is None or shown.high is None else f" [{dollars(shown.low)} to {dollars(shown.high)}]"
    return f"{NOTHING if shown.value is None else dollars(shown.value)}{ends}"
