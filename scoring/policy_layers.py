"""The layers that a check may have, as a policy writes them."""

from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from ..references import ReferenceKind

Scalar = bool | int | float | str
Share = Annotated[float, Field(gt=0, le=10, allow_inf_nan=False)]
Finite = Annotated[float, Field(allow_inf_nan=False)]


class Strict(BaseModel):
    """No room for an unknown key."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def _refuse_empty(least: float | None, most: float | None, low: str, high: str) -> None:
    if least is not None and most is not None and least > most:
        raise ValueError(f"{low} {least:g} is above {high} {most:g}: nothing is between them")


class Range(Strict):
    """Params within bounds."""

    at_least: Finite | None = None
    at_most: Finite | None = None

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

    at_least: Finite | None = None
    at_most: Finite | None = None
    equals: Scalar | None = None
    warn_at_least: Finite | None = None
    warn_at_most: Finite | None = None

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
        return self


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
        return self


class Maximum(Strict):
    """A link against the most that its own device says it can: below it, it fails."""


class Peers(Strict):
    """An outlier among like subjects: worse than their median by `effect` and by `sigmas` robust sigmas."""

    effect: Annotated[float, Field(gt=0, lt=1)] = 0.05
    sigmas: Annotated[float, Field(gt=0, le=100)] = 5.0
    within: Literal["node", "cluster"] = "cluster"


class Baseline(Strict):
    """A share of the last accepted run's value, where there is one to compare with."""

    warn: Share | None = None
    fail: Share | None = None

    @model_validator(mode="after")
    def _says_something(self) -> "Baseline":
        if self.warn is None and self.fail is None:
            raise ValueError("give warn or fail")
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
