"""What each kind of accelerator can do (accelerators.yaml), found by exact name, memory size and power limit."""

from datetime import date
from functools import cache, lru_cache
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from ..evidence import Params, is_metric
from .loading import FOLDER, load

FILE = FOLDER / "accelerators.yaml"
GIB = 2**30

ReferenceKind = Literal["peak", "achievable", "floor"]
Text = Annotated[str, Field(min_length=1, max_length=300)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]

# A device shows less than its label: ECC and firmware take up to 7% of it (a 48 GB L40S shows 45.0 GiB).
_LEAST_OF_LABEL, _MOST_OF_LABEL = 0.92, 1.02
# Power limits are set in whole watts; a cap that somebody set is further away than this.
_POWER_TOLERANCE = 0.02


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Source(_Strict):
    """Where values come from, and when they were taken over."""

    name: Text
    at: Text
    date: date

    def __str__(self) -> str:
        return f"{self.name} {self.at}, read {self.date}"


class ReferenceValue(_Strict):
    """One value of one metric, in the metric's unit, for measurements that carry the params of `where`.

    For a collective `where` holds how many ranks take part.
    """

    metric: Text
    where: dict[str, int | str] = {}
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


class Accelerator(_Strict):
    """A kind of accelerator and its values. Memory as on the label, in GB; power limit in W."""

    key: Text
    names: Annotated[tuple[Text, ...], Field(min_length=1)]
    memory_gb: Positive | None = None
    power_limit_w: Positive | None = None
    values: tuple[ReferenceValue, ...]

    def value(self, metric: str, params: Params, kind: ReferenceKind) -> ReferenceValue | None:
        """The value that fits, the most closely described first; None where there is none."""
        fitting = [
            value for value in self.values if (value.metric, value.kind) == (metric, kind) and value.fits(params)
        ]
        return max(fitting, key=lambda value: len(value.where), default=None)

    def is_this(self, name: str, memory_bytes: int | None, power_limit_w: float | None) -> bool:
        """Whether a device of that name, memory and power limit is of this kind.

        A memory that is not known fits no entry that asks for one. A power limit that is not known (closed to the
        tenant) fits: the reference at full power then demands the most, so it flatters nobody.
        """
        return (
            _plain(name) in map(_plain, self.names) and self._memory_fits(memory_bytes) and self._power(power_limit_w)
        )

    def _memory_fits(self, memory_bytes: int | None) -> bool:
        if self.memory_gb is None:
            return True
        if memory_bytes is None:
            return False
        return _LEAST_OF_LABEL <= memory_bytes / GIB / self.memory_gb <= _MOST_OF_LABEL

    def _power(self, power_limit_w: float | None) -> bool:
        if self.power_limit_w is None or power_limit_w is None:
            return True
        return abs(power_limit_w / self.power_limit_w - 1) <= _POWER_TOLERANCE

    @property
    def closeness(self) -> tuple[int, int]:
        """How much this entry asks for: the one that asks for most is tried first."""
        asked = (self.memory_gb is not None) + (self.power_limit_w is not None)
        return asked, max(map(len, self.names))


class AcceleratorFile(_Strict):
    """The whole of accelerators.yaml."""

    sources: dict[str, Source]
    accelerators: tuple[Accelerator, ...]

    @model_validator(mode="after")
    def _sources_are_named(self) -> "AcceleratorFile":
        for accelerator in self.accelerators:
            for value in accelerator.values:
                if value.source not in self.sources:
                    raise ValueError(f"{accelerator.key}: source {value.source!r} is not listed under sources")
        keys = [accelerator.key for accelerator in self.accelerators]
        doubled = {key for key in keys if keys.count(key) > 1}
        if doubled:
            raise ValueError(f"key stands twice: {', '.join(sorted(doubled))}")
        return self


@cache
def _loaded(file: Path = FILE) -> AcceleratorFile:
    return load(file, AcceleratorFile)


def accelerators() -> tuple[Accelerator, ...]:
    """All kinds of accelerators that have references. Raises ReferenceFileError."""
    return _loaded().accelerators


def sources() -> dict[str, Source]:
    """The sources by the names that values give."""
    return _loaded().sources


@lru_cache(maxsize=4096)
def match_accelerator(name: str, memory_bytes: int | None, power_limit_w: float | None) -> Accelerator | None:
    """The kind of a device, or None: an unknown one has no reference, never somebody else's.

    Names are compared whole (H20 is not H200); the entry that asks for most is taken.
    """
    fitting = [entry for entry in accelerators() if entry.is_this(name, memory_bytes, power_limit_w)]
    return max(fitting, key=lambda entry: entry.closeness, default=None)


def _plain(name: str) -> str:
    return " ".join(name.split()).casefold()
