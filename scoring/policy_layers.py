"""The layers that a check may have, as a policy writes them."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from ..evidence.user_files import Number, Strict
from ..references import ReferenceKind

Scalar = bool | int | float | str
MOST_OF_FLOOR = 2.0  # a floor is the least that somebody takes: a buyer may want more


def _a_share(value: float) -> float:
    if not 0 < value <= MOST_OF_FLOOR:
        raise ValueError(f"should be a share, above 0 and at most 1 (0.9 is 90 %), not {value:g}")
    return value


Share = Annotated[Number, AfterValidator(_a_share)]


def _in_order(warn: float | None, fail: float | None, *, most: float = 1.0, prefix: str = "") -> None:
    """Shares that a value must reach: what warns comes before what fails, or it would never be seen."""
    for name, share in (("warn", warn), ("fail", fail)):
        if share is not None and share > most:
            raise ValueError(f"{prefix}{name} {share:g}: should be a share of at most {most:g} (0.9 is 90 %)")
    if warn is not None and fail is not None and warn <= fail:
        raise ValueError(f"{prefix}warn {warn:g} is not above {prefix}fail {fail:g}: it could never warn")


def _refuse_empty(least: float | None, most: float | None, low: str, high: str) -> None:
    if least is not None and most is not None and least > most:
        raise ValueError(f"{low} {least:g} is above {high} {most:g}: nothing is between them")


class Range(Strict):
    """Params within bounds."""

    at_least: Number | None = None
    at_most: Number | None = None

    @model_validator(mode="after")
    def _says_something(self) -> "Range":
        if self.at_least is None and self.at_most is None:
            raise ValueError("give at_least or at_most")
        _refuse_empty(self.at_least, self.at_most, "at_least", "at_most")
        return self


Wanted = Scalar | tuple[Scalar, ...] | Range


def _one_at_least(wanted: Wanted) -> Wanted:
    if wanted == ():
        raise ValueError("an empty list asks for nothing")
    return wanted


NotEmpty = Annotated[Wanted, AfterValidator(_one_at_least)]


class Contract(Strict):
    """The buyer's own number: outside `at_least`, `at_most` or `equals` fails, outside `warn_…` warns."""

    at_least: Number | None = None
    at_most: Number | None = None
    equals: Scalar | None = None
    warn_at_least: Number | None = None
    warn_at_most: Number | None = None

    @model_validator(mode="after")
    def _says_something(self) -> "Contract":
        if all(getattr(self, name) is None for name in type(self).model_fields):
            raise ValueError("give one of at_least, at_most, equals, warn_at_least, warn_at_most")
        if self.equals is not None and any(
            getattr(self, name) is not None for name in type(self).model_fields if name != "equals"
        ):
            raise ValueError("equals stands alone")
        for low in ("at_least", "warn_at_least"):
            for high in ("at_most", "warn_at_most"):
                _refuse_empty(getattr(self, low), getattr(self, high), low, high)
        self._refuse_mute()
        return self

    def _refuse_mute(self) -> None:
        """A warning that only what fails would get."""
        least, most = (self.warn_at_least, self.at_least), (self.warn_at_most, self.at_most)
        for (warn, hard), words, sign in (
            (least, "least is not above at_least", 1),
            (most, "most is not below at_most", -1),
        ):
            if warn is not None and hard is not None and not sign * warn > sign * hard:
                raise ValueError(f"warn_at_{words.replace(' ', f' {warn:g} ', 1)} {hard:g}: it could never warn")

    @property
    def bounds(self) -> dict[str, float]:
        """The numbers that stand in it, by their keys."""
        given = {name: getattr(self, name) for name in type(self).model_fields}
        return {name: value for name, value in given.items() if isinstance(value, int | float) and value is not True}


class Reference(Strict):
    """A share of what this hardware can do: below `fail` fails, below `warn` warns.

    Where there is no value of the kind asked `of`, `or_peak_warn` and `or_peak_fail` compare with the peak.
    """

    of: ReferenceKind = "achievable"
    warn: Share | None = None
    fail: Share | None = None
    or_peak_warn: Share | None = None
    or_peak_fail: Share | None = None

    @model_validator(mode="after")
    def _says_something(self) -> "Reference":
        if self.warn is None and self.fail is None:
            raise ValueError("give warn or fail")
        most = MOST_OF_FLOOR if self.of == "floor" else 1.0
        _in_order(self.warn, self.fail, most=most)
        _in_order(self.or_peak_warn, self.or_peak_fail, prefix="or_peak_")
        if self.of == "peak" and (self.or_peak_warn is not None or self.or_peak_fail is not None):
            raise ValueError("or_peak_warn and or_peak_fail are for another kind than the peak (of: peak)")
        return self


class Maximum(Strict):
    """A link against the most that its own device says it can: below it, it fails."""


class Peers(Strict):
    """An outlier among like subjects: worse than their median by `effect` and by `sigmas` robust sigmas."""

    effect: Annotated[Number, Field(gt=0, lt=1)] = 0.05
    sigmas: Annotated[Number, Field(ge=1, le=100)] = 5.0
    within: Literal["node", "cluster"] = "cluster"


class Baseline(Strict):
    """A share of the last accepted run's value, where there is one to compare with."""

    warn: Share | None = None
    fail: Share | None = None

    @model_validator(mode="after")
    def _says_something(self) -> "Baseline":
        if self.warn is None and self.fail is None:
            raise ValueError("give warn or fail")
        _in_order(self.warn, self.fail)
        return self


class Uniform(Strict):
    """A fact that should be the same everywhere: who deviates from the majority warns or fails."""

    result: Literal["warn", "fail"] = "warn"


class Layers(Strict):
    """The layers of a check: the worst of them counts."""

    contract: Contract | None = None
    reference: Reference | None = None
    maximum: Maximum | None = None
    peers: Peers | None = None
    baseline: Baseline | None = None
    uniform: Uniform | None = None

    @property
    def given(self) -> tuple[str, ...]:
        """The names of the layers that are there."""
        return tuple(name for name in type(self).model_fields if getattr(self, name) is not None)
