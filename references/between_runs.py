"""How much a figure differs from run to run, where no history says it: between_runs.yaml, with sources."""

from functools import cache
from typing import Annotated, Literal

from pydantic import Field, model_validator

from ..evidence import Device, metric
from ..evidence.user_files import Strict
from .entries import Positive, Source, Text
from .loading import FOLDER, ReferenceFileError, model_from_text

Each = Literal["node", "pair", "cluster"]
FILE = "between_runs.yaml"


class Spread(Strict):
    """One standard deviation of a figure from run to run, as a share."""

    spread: Annotated[Positive, Field(lt=1)]
    source: Text
    note: str = ""


class RunSpread(Spread):
    """That of a metric's figure; `each` where its subject matters."""

    metric: Text
    each: Each | None = None


class RunSpreads(Strict):
    """All of them; `weight` is how many repetitions of a run a default counts for beside history. `on_cpus` is that of
    any figure measured on CPUs. `one_subject` is that of a single accelerator, node or pair beside its own earlier
    value, `one_subject_of` the same for families of metrics that differ from it."""

    weight: Positive
    sources: dict[str, Source]
    on_cpus: Spread
    defaults: tuple[RunSpread, ...]
    one_subject: Spread
    one_subject_of: dict[Text, Spread]

    @model_validator(mode="after")
    def _every_name_is_known(self) -> "RunSpreads":
        for default in self.defaults:
            metric(default.metric)
        for one in (self.on_cpus, self.one_subject, *self.one_subject_of.values(), *self.defaults):
            if one.source not in self.sources:
                raise ValueError(f"source {one.source!r} is not listed under sources")
        return self

    def of(self, name: str, each: str) -> RunSpread:
        """The default of a metric on such subjects. Raises KeyError where there is none."""
        fit = [one for one in self.defaults if one.metric == name and one.each in (None, each)]
        if not fit:
            raise KeyError(f"{FILE} has no spread of {name} on {each}")
        return max(fit, key=lambda one: one.each is not None)

    def of_one_subject(self, name: str, device: Device) -> float:
        """The spread of a metric on one subject."""
        of_family = self.one_subject_of.get(name.partition(".")[0], self.one_subject)
        return (self.on_cpus if device == "cpu" else of_family).spread


@cache
def run_spreads() -> RunSpreads:
    """The defaults that come with hwlottery. Raises ReferenceFileError."""
    try:
        return model_from_text((FOLDER / FILE).read_text(encoding="utf-8"), FILE, RunSpreads)
    except KeyError as error:
        raise ReferenceFileError(f"{FILE}: {error.args[0]}") from error
