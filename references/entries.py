"""What every reference is made of: a value of one metric, with its kind and its source."""

from datetime import date
from typing import Annotated, Literal

from pydantic import Field, field_validator

from ..evidence import Params, is_metric
from ..evidence.user_files import Number, Strict

ReferenceKind = Literal["peak", "achievable", "floor"]
Text = Annotated[str, Field(min_length=1, max_length=300)]
Key = Annotated[str, Field(min_length=1, max_length=80, pattern=r"^[a-z0-9][a-z0-9_.-]*$")]
Positive = Annotated[Number, Field(gt=0)]


class Source(Strict):
    """Where values come from, and when they were taken over."""

    name: Text
    at: Text
    date: date

    def __str__(self) -> str:
        return f"{self.name} {self.at}, read {self.date}"


class ReferenceValue(Strict):
    """One value of one metric, in the metric's unit, for measurements that carry the params of `where`.

    For a collective `where` holds how many ranks take part.
    """

    metric: Text
    where: dict[str, int | str] = Field(default_factory=dict)
    kind: ReferenceKind
    value: Positive
    source: Text
    note: str = ""

    @field_validator("metric")
    @classmethod
    def _known_metric(cls, name: str) -> str:
        if not is_metric(name):
            raise ValueError(f"{name!r} is no metric of the catalogue")
        return name

    def fits(self, params: Params) -> bool:
        """Whether a measurement with these params compares with this value."""
        return all(key in params and params[key] == wanted for key, wanted in self.where.items())


class Entry(Strict):
    """A kind of hardware and its values."""

    key: Key
    values: tuple[ReferenceValue, ...]

    def value(self, metric: str, params: Params, kind: ReferenceKind) -> ReferenceValue | None:
        """The value that fits, the most closely described first; None where there is none."""
        found = [one for one in self.values if (one.metric, one.kind) == (metric, kind) and one.fits(params)]
        return max(found, key=lambda value: len(value.where), default=None)
