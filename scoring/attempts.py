"""Of several attempts the one that is judged, and of several layers those that decide."""

import msgspec

from ..evidence import Metric
from .layers import Judged
from .policy_model import Check
from .values import Value


def other_attempts(value: Value, number: float) -> list[float]:
    """The values of all attempts but one that has this number."""
    numbers = [*value.earlier] if value.value is None else [*value.earlier, value.value]
    if number in numbers:
        numbers.remove(number)
    return numbers


def number_to_judge(check: Check, described: Metric, value: Value) -> float:
    """The last attempt's value; the worst of all attempts where a fault seen once is not undone by a retest."""
    if value.value is not None and not value.earlier:
        return value.value
    numbers = [*value.earlier] if value.value is None else [value.value, *value.earlier]
    if not check.any_attempt:
        return numbers[0]
    return min(numbers) if described.better == "higher" else max(numbers)


def that_decide(layers: list[Judged]) -> list[Judged]:
    """Layers that could say nothing step back behind one that could, and stay as a remark.

    Without a reference the buyer's own number decides; peers without power block only where no absolute layer passed.
    """
    if not any(one.reason for one in layers):
        return layers
    absolute = any(one.layer in ("contract", "reference") and one.result in ("pass", "warn") for one in layers)
    own_number = any(one.layer == "contract" and one.result != "not_measured" for one in layers)
    return [
        msgspec.structs.replace(one, result="pass", reason="", detail="", not_judged=one.detail)
        if (one.reason == "no_power" and absolute) or (one.reason == "no_reference" and own_number)
        else one
        for one in layers
    ]
