"""Whom to measure again, and with whom: an outlier is blamed only when it was seen as one twice."""

from collections.abc import Callable, Mapping, Sequence

from .group import Better, Threshold, group_of, is_outlier, worse_by

MOST_ATTEMPTS = 3  # at one value: the first, its retest, and one more where these disagree
CONTROLS = 2

Attempts = Mapping[str, Sequence[float]]  # each subject's values, the first attempt first


def suspects(
    attempts: Attempts, better: Better, threshold: Threshold, doubted: Callable[[str, float], bool] | None = None
) -> list[str]:
    """The subjects whose last value is bad and the only bad one so far, as long as there are attempts left.

    Bad is an outlier among the last values of all, or what `doubted` says of a subject and its value: so that one that
    nobody can be compared with is not blamed for a single value either.
    """
    group = group_of([values[-1] for values in attempts.values()])

    def bad(subject: str, value: float) -> bool:
        return is_outlier(value, group, better, threshold) or (doubted is not None and doubted(subject, value))

    return [
        subject
        for subject, values in attempts.items()
        if len(values) < MOST_ATTEMPTS and bad(subject, values[-1]) and not any(bad(subject, v) for v in values[:-1])
    ]


def controls(attempts: Attempts, better: Better, leave_out: Sequence[str]) -> list[str]:
    """Good subjects nearest the median, to be measured beside the suspects: what has changed meanwhile shows there."""
    group = group_of([values[-1] for values in attempts.values()])
    others = [subject for subject in attempts if subject not in leave_out]
    return sorted(others, key=lambda name: (abs(worse_by(attempts[name][-1], group, better)), name))[:CONTROLS]
