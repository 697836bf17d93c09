"""What a rank says when its part of a trial is done: plain values, without number, trial or time.

The runner turns them into records. A rank function returns a list of these and nothing else, so that it can be
called anywhere: in a child process of a node's worker, or by hand on one GPU (`make gpu-check`).
"""

from collections.abc import Iterable
from typing import Any

from msgspec import Struct

from .records import EventKind, Params, Reason, Scalar, Severity


class Reading(Struct, frozen=True, kw_only=True, tag="reading"):
    """Samples of one metric on one subject, in the metric's unit (evidence/metrics.py)."""

    metric: str
    subject: str
    samples: tuple[float, ...]
    params: Params = {}


class Missing(Struct, frozen=True, kw_only=True, tag="missing"):
    """A metric that could not be measured here, and why."""

    metric: str
    subject: str
    reason: Reason
    detail: str = ""
    params: Params = {}


class Observed(Struct, frozen=True, kw_only=True, tag="observed"):
    """A fact seen: inventory, version, limit or setting."""

    subject: str
    key: str
    value: Scalar


class Noticed(Struct, frozen=True, kw_only=True, tag="noticed"):
    """Something that happened while the trial ran; the runner gives it the trial's end as its time."""

    kind: EventKind
    subject: str
    severity: Severity = "info"
    detail: str = ""


AnyReading = Reading | Missing | Observed | Noticed


def reading(metric: str, subject: str, samples: float | Iterable[float], **params: Any) -> Reading:
    """A reading from one number or many; keyword arguments become its params."""
    values = (samples,) if isinstance(samples, int | float) else tuple(float(value) for value in samples)
    return Reading(metric=metric, subject=subject, samples=values, params=params)
