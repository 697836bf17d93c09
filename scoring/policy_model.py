"""What a policy may say: pydantic models with no room for an unknown key."""

from string import Template
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from ..evidence import TIERS, Device, Tier, is_metric, metric
from ..references.accelerators import ReferenceKind
from .verdict import Category

Each = Literal["cluster", "node", "accelerator", "numa", "filesystem", "pair"]
Severity = Literal["required", "warn"]
RuleName = Literal[
    "evidence.complete", "node.responds", "node.accelerators", "health.events", "run.length",
    "pairs.nodes", "pairs.links", "pairs.exact", "pairs.stalls",
]  # fmt: skip
Scalar = bool | int | float | str
Share = Annotated[float, Field(gt=0, le=10, allow_inf_nan=False)]
Finite = Annotated[float, Field(allow_inf_nan=False)]
Text = Annotated[str, Field(max_length=1000)]
Name = Annotated[str, Field(min_length=1, max_length=80, pattern=r"^[a-z0-9][a-z0-9_.-]*$")]

TEMPLATE_NAMES = ("subject", "node", "observed", "expected", "metric")
RULE_NAMES: tuple[RuleName, ...] = (
    "evidence.complete",
    "node.responds",
    "node.accelerators",
    "health.events",
    "run.length",
    "pairs.nodes",
    "pairs.links",
    "pairs.exact",
    "pairs.stalls",
)
PER_NODE = ("pairs.nodes", "pairs.stalls")
# Which subjects of the catalogue an entry's `each` stands for.
KINDS_OF: dict[Each, tuple[str, ...]] = {
    "cluster": ("cluster",),
    "node": ("node",),
    "accelerator": ("gpu", "slot"),
    "numa": ("numa",),
    "filesystem": ("filesystem",),
    "pair": ("pair",),
}


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Range(_Strict):
    """Params within bounds."""

    at_least: Finite | None = None
    at_most: Finite | None = None


Wanted = Scalar | tuple[Scalar, ...] | Range


class Contract(_Strict):
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
        return self


class Reference(_Strict):
    """A share of what this hardware can do: below `fail` fails, below `warn` warns.

    Where there is no value of the kind asked `of`, `or_peak_warn` compares with the peak and only warns.
    """

    of: ReferenceKind = "achievable"
    warn: Share | None = None
    fail: Share | None = None
    or_peak_warn: Share | None = None

    @model_validator(mode="after")
    def _says_something(self) -> "Reference":
        if self.warn is None and self.fail is None:
            raise ValueError("give warn or fail")
        return self


class Peers(_Strict):
    """An outlier among like subjects: worse than their median by `effect` and by `sigmas` robust sigmas."""

    effect: Annotated[float, Field(gt=0, lt=1)] = 0.05
    sigmas: Annotated[float, Field(gt=0, le=100)] = 5.0
    within: Literal["node", "cluster"] = "cluster"


class Baseline(_Strict):
    """A share of the last accepted run's value, where there is one to compare with."""

    warn: Share | None = None
    fail: Share | None = None


class Uniform(_Strict):
    """A fact that should be the same everywhere: who deviates from the majority warns or fails."""

    result: Literal["warn", "fail"] = "warn"


class Layers(_Strict):
    """The layers of a check: the worst of them counts."""

    contract: Contract | None = None
    reference: Reference | None = None
    peers: Peers | None = None
    baseline: Baseline | None = None
    uniform: Uniform | None = None


class Check(_Strict):
    """One thing that is demanded.

    Exactly one of metric, fact and rule says what is looked at; `each` on whom, over the promised nodes; `where` with
    which params (each value of a list is demanded). `partners_at_least`: with how many others a rule on pairs wants
    each node measured; of fewer that are there, with all. `tiers`: access tiers that must measure it; none means all.
    `any_attempt`: a fault seen once is not undone by a retest. `weight`: its part in the index.
    """

    check: Name
    metric: str | None = None
    fact: Annotated[str, Field(min_length=1, max_length=128)] | None = None
    rule: RuleName | None = None
    where: dict[str, Wanted] = {}
    device: Device | None = None
    each: Each
    ranks_at_least: Annotated[int, Field(ge=1)] = 1
    nodes_at_least: Annotated[int, Field(ge=1)] = 1
    partners_at_least: Annotated[int, Field(ge=1)] = 2
    tiers: tuple[Tier, ...] = TIERS
    layers: Layers = Layers()
    severity: Severity = "required"
    excludable: bool = False
    any_attempt: bool = False
    category: Category
    weight: Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)] = 0.0
    action: Text = ""
    how: Text = ""
    statement: Text = ""

    @field_validator("metric")
    @classmethod
    def _metric_is_known(cls, name: str | None) -> str | None:
        if name is not None and not is_metric(name):
            try:
                metric(name)
            except KeyError as error:
                raise ValueError(str(error.args[0])) from error
        return name

    @field_validator("action", "how", "statement")
    @classmethod
    def _template_is_known(cls, text: str) -> str:
        names = Template(text).get_identifiers()
        unknown = sorted(set(names) - set(TEMPLATE_NAMES))
        if unknown or not Template(text).is_valid():
            shown = ", ".join(f"${name}" for name in TEMPLATE_NAMES)
            raise ValueError(
                f"unknown ${unknown[0] if unknown else ''} in the text (choices: {shown}; $$ for a dollar)"
            )
        return text

    @model_validator(mode="after")
    def _one_thing(self) -> "Check":
        if sum(part is not None for part in (self.metric, self.fact, self.rule)) != 1:
            raise ValueError("give exactly one of metric, fact, rule")
        if self.metric is not None and not set(metric(self.metric).subjects) & set(KINDS_OF[self.each]):
            raise ValueError(f"{self.metric} is not measured for each {self.each}")
        if (self.rule or "").startswith("pairs.") and self.each != ("node" if self.rule in PER_NODE else "cluster"):
            raise ValueError(f"rule {self.rule} is for each {'node' if self.rule in PER_NODE else 'cluster'}")
        if self.weight and self.layers.reference is None:
            raise ValueError("weight needs a reference layer: the index is made of shares of the reference")
        return self


class PolicyModel(_Strict):
    """The whole of a policy file."""

    name: Name
    purpose: Text = ""
    signable: bool = True
    exclude_at_most: Annotated[float, Field(ge=0, le=0.5)] = 0.10
    checks: Annotated[tuple[Check, ...], Field(min_length=1, max_length=500)]

    @model_validator(mode="after")
    def _whole(self) -> "PolicyModel":
        names = [check.check for check in self.checks]
        doubled = sorted({name for name in names if names.count(name) > 1})
        if doubled:
            raise ValueError(f"check {doubled[0]} stands twice")
        if not any(_demands_whole_evidence(check) for check in self.checks):
            raise ValueError("no check with rule: evidence.complete, each: cluster, severity: required")
        return self


def _demands_whole_evidence(check: Check) -> bool:
    without_conditions = (
        check.device is None and set(check.tiers) == set(TIERS) and check.ranks_at_least == check.nodes_at_least == 1
    )
    return (
        check.rule == "evidence.complete"
        and check.each == "cluster"
        and check.severity == "required"
        and without_conditions
    )


def keys_at(loc: tuple[Any, ...]) -> tuple[str, ...]:
    """The keys that are valid at a place in a policy file."""
    model: type[BaseModel] = PolicyModel
    for part in loc:
        model = _NESTED.get(str(part), model)
    return tuple(model.model_fields)


_NESTED: dict[str, type[BaseModel]] = {
    "checks": Check,
    "layers": Layers,
    "contract": Contract,
    "reference": Reference,
    "peers": Peers,
    "baseline": Baseline,
    "uniform": Uniform,
}
