"""What a policy may say: pydantic models with no room for an unknown key."""

from string import Template
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, field_validator, model_validator

from ..evidence import TIERS, Device, Tier, is_metric, metric
from ..references.accelerators import ReferenceKind
from .maxima import FACT_OF
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


def _refuse_empty(least: float | None, most: float | None, low: str, high: str) -> None:
    if least is not None and most is not None and least > most:
        raise ValueError(f"{low} {least:g} is above {high} {most:g}: nothing is between them")


class Range(_Strict):
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
        if self.equals is not None and any(
            getattr(self, name) is not None for name in type(self).model_fields if name != "equals"
        ):
            raise ValueError("equals stands alone")
        for low in ("at_least", "warn_at_least"):
            for high in ("at_most", "warn_at_most"):
                _refuse_empty(getattr(self, low), getattr(self, high), low, high)
        return self


class Reference(_Strict):
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


class Maximum(_Strict):
    """A link against the most that its own device says it can: below it, it fails."""


class Peers(_Strict):
    """An outlier among like subjects: worse than their median by `effect` and by `sigmas` robust sigmas."""

    effect: Annotated[float, Field(gt=0, lt=1)] = 0.05
    sigmas: Annotated[float, Field(gt=0, le=100)] = 5.0
    within: Literal["node", "cluster"] = "cluster"


class Baseline(_Strict):
    """A share of the last accepted run's value, where there is one to compare with."""

    warn: Share | None = None
    fail: Share | None = None

    @model_validator(mode="after")
    def _says_something(self) -> "Baseline":
        if self.warn is None and self.fail is None:
            raise ValueError("give warn or fail")
        return self


class Uniform(_Strict):
    """A fact that should be the same everywhere: who deviates from the majority warns or fails."""

    result: Literal["warn", "fail"] = "warn"


class Layers(_Strict):
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


_LAYERS_OF_METRIC = ("contract", "reference", "maximum", "peers", "baseline")
_LAYERS_OF_FACT = ("contract", "uniform")
_EACH_OF_RULE: dict[RuleName, Each] = {
    "evidence.complete": "cluster",
    "node.responds": "node",
    "node.accelerators": "node",
    "health.events": "node",
    "run.length": "cluster",
    "pairs.nodes": "node",
    "pairs.links": "cluster",
    "pairs.exact": "cluster",
    "pairs.stalls": "node",
}
SMALLEST_GROUP = 2  # a reduction needs two ranks
# What a signable policy must hold a cluster to, at the least: figures of one of these.
SPEED_KINDS = ("matmul", "all_reduce", "burn_in")


def _layers_of_rule(rule: RuleName | None) -> tuple[str, ...]:
    if rule in ("pairs.nodes", "pairs.links"):
        return ("peers",)
    return ("contract",) if rule == "run.length" else ()


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
    where: dict[str, NotEmpty] = {}
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
        if self.weight and self.layers.reference is None:
            raise ValueError("weight needs a reference layer: the index is made of shares of the reference")
        return self

    @model_validator(mode="after")
    def _layers_apply(self) -> "Check":
        """A layer that says nothing of this check would look like a demand and be none."""
        possible = _LAYERS_OF_METRIC if self.metric else _LAYERS_OF_FACT if self.fact else _layers_of_rule(self.rule)
        useless = [name for name in self.layers.given if name not in possible]
        what = self.metric or self.fact or self.rule
        if useless:
            raise ValueError(f"layer {useless[0]} says nothing of {what} (choices: {', '.join(possible) or 'none'})")
        if self.layers.given == ("baseline",):
            raise ValueError("baseline alone demands nothing of a first run: give another layer beside it")
        if self.layers.maximum is not None and self.metric not in FACT_OF:
            raise ValueError(f"layer maximum is for {', '.join(FACT_OF)}")
        if self.rule is not None and self.each != _EACH_OF_RULE[self.rule]:
            raise ValueError(f"{self.rule} is for each {_EACH_OF_RULE[self.rule]}")
        if self.rule == "run.length" and self.layers.contract is None:
            raise ValueError("run.length needs a contract: {at_least: HOURS}")
        return self

    @property
    def unconditional(self) -> bool:
        """Whether it is required of every run, whatever its size and its access tier; the device may be named."""
        small = self.ranks_at_least <= SMALLEST_GROUP and self.nodes_at_least == 1
        return self.severity == "required" and set(self.tiers) == set(TIERS) and small


class PolicyModel(_Strict):
    """The whole of a policy file."""

    name: Name
    purpose: Text = ""
    signable: bool = True
    exclude_at_most: Annotated[float, Field(ge=0, le=0.5, strict=True, allow_inf_nan=False)] = 0.10
    checks: Annotated[tuple[Check, ...], Field(min_length=1, max_length=500)]

    @model_validator(mode="after")
    def _whole(self) -> "PolicyModel":
        names = [check.check for check in self.checks]
        doubled = sorted({name for name in names if names.count(name) > 1})
        if doubled:
            raise ValueError(f"check {doubled[0]} stands twice")
        if not any(_demands_whole_evidence(check) for check in self.checks):
            raise ValueError("no check with rule: evidence.complete, each: cluster, severity: required")
        if self.signable:
            self._refuse_lax()
        return self

    def _refuse_lax(self) -> None:
        """What can be signed says at least that nodes answered and that something of their speed was measured."""
        required = [check for check in self.checks if check.unconditional]
        if not any(check.rule == "node.responds" and _everywhere(check) for check in required):
            raise ValueError("no required check with rule: node.responds (or say signable: false)")
        if not any((check.metric or "").startswith(SPEED_KINDS) for check in required):
            raise ValueError(
                "no required check of a metric of matmul, all_reduce or burn_in: it would prove nothing "
                "(or say signable: false)"
            )


def _demands_whole_evidence(check: Check) -> bool:
    return check.rule == "evidence.complete" and check.each == "cluster" and check.unconditional and _everywhere(check)


def _everywhere(check: Check) -> bool:
    return check.device is None and check.ranks_at_least == check.nodes_at_least == 1


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
    "maximum": Maximum,
    "peers": Peers,
    "baseline": Baseline,
    "uniform": Uniform,
}
