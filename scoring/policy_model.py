"""What a policy may say: pydantic models with no room for an unknown key."""

from string import Template
from typing import Annotated, Literal, get_args

from pydantic import Field, field_validator, model_validator

from ..evidence import TIERS, Device, Tier, is_metric, metric
from ..evidence.possible import Possible
from ..evidence.user_files import Number, Strict, Whole
from .maxima import FACT_OF
from .policy_layers import Layers, NotEmpty
from .policy_terms import Days, Nodes, Terms, Text
from .verdict import Category

Each = Literal["cluster", "node", "accelerator", "numa", "filesystem", "pair"]
Severity = Literal["required", "warn"]
RuleName = Literal[
    "evidence.complete", "node.responds", "node.accelerators", "health.events", "run.length",
    "pairs.nodes", "pairs.links", "pairs.exact", "pairs.stalls", "pairs.line_rate", "rails.wire", "rails.exact",
    "fabric.network", "node.count", "reliability.mtbf",
]  # fmt: skip
Name = Annotated[str, Field(min_length=1, max_length=80, pattern=r"^[a-z0-9][a-z0-9_.-]*$")]


TEMPLATE_NAMES = ("subject", "node", "observed", "expected", "metric")
RULE_NAMES: tuple[RuleName, ...] = get_args(RuleName)
# Which subjects of the catalogue an entry's `each` stands for.
KINDS_OF: dict[Each, tuple[str, ...]] = {
    "cluster": ("cluster",),
    "node": ("node",),
    "accelerator": ("gpu", "slot"),
    "numa": ("numa",),
    "filesystem": ("filesystem",),
    "pair": ("pair",),
}


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
    "node.count": "cluster",
    "reliability.mtbf": "cluster",
    "pairs.line_rate": "cluster",
    "rails.wire": "cluster",
    "rails.exact": "cluster",
    "fabric.network": "node",
}
# Rules that give a figure, which the check's contract is for.
FIGURE_OF_RULE: dict[RuleName, str] = {"run.length": "HOURS", "node.count": "NODES", "reliability.mtbf": "NODE-DAYS"}
_POSSIBLE_OF_RULE = {
    "run.length": Possible(above=True, most=87_600),
    "node.count": Possible(least=1, most=1e6, whole=True),
    "reliability.mtbf": Possible(above=True, most=1e9),
    "rails.wire": Possible(above=True, most=1.05),
}
SMALLEST_GROUP = 2  # a reduction needs two ranks
# What a signable policy must hold a cluster to, at the least: figures of one of these.
SPEED_KINDS = ("matmul", "all_reduce", "burn_in")


def _layers_of_rule(rule: RuleName | None) -> tuple[str, ...]:
    if rule in ("pairs.nodes", "pairs.links"):
        return ("peers",)
    if rule == "rails.wire":
        return ("contract", "peers")
    return ("contract",) if rule in FIGURE_OF_RULE else ()


class Check(Strict):
    """One thing that is demanded.

    Exactly one of metric, fact and rule says what is looked at; `each` on whom, over the promised nodes; `where` with
    which params (each value of a list is demanded). `partners_at_least`: with how many others a rule on pairs wants
    each node measured; of fewer that are there, with all. `beside_baseline`: of runs that
    are held against one only. `tiers`: access tiers that must measure it, all unless said; an empty list
    means none: a fault that is seen counts, and nobody has to look.
    `any_attempt`: a fault seen once is not undone by a retest. `samples_at_least`: fewer samples decide nothing.
    `weight`: its part in the index. `days_to_cure`: as in the terms, where this check has days of its own.
    """

    check: Name
    metric: str | None = None
    fact: Annotated[str, Field(min_length=1, max_length=128)] | None = None
    rule: RuleName | None = None
    where: dict[str, NotEmpty] = Field(default_factory=dict)
    device: Device | None = None
    each: Each
    ranks_at_least: Nodes = 1
    nodes_at_least: Nodes = 1
    partners_at_least: Nodes = 2
    beside_baseline: bool = False
    tiers: tuple[Tier, ...] = TIERS
    layers: Layers = Layers()
    severity: Severity = "required"
    excludable: bool = False
    any_attempt: bool = False
    samples_at_least: Annotated[Whole, Field(ge=0, le=1_000_000)] = 0
    category: Category
    weight: Annotated[Number, Field(ge=0, le=100)] = 0.0
    action: Text = ""
    how: Text = ""
    statement: Text = ""
    days_to_cure: Days | None = None

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
        if self.layers.maximum is not None and self.metric not in FACT_OF:
            raise ValueError(f"layer maximum is for {', '.join(FACT_OF)}")
        if self.rule is not None and self.each != _EACH_OF_RULE[self.rule]:
            raise ValueError(f"{self.rule} is for each {_EACH_OF_RULE[self.rule]}")
        if self.rule in FIGURE_OF_RULE and (self.layers.contract is None or self.layers.contract.at_least is None):
            raise ValueError(f"{self.rule} needs a contract: {{at_least: {FIGURE_OF_RULE[self.rule]}}}")
        contract = self.layers.contract
        if self.rule == "reliability.mtbf" and contract and contract.model_fields_set != {"at_least"}:
            raise ValueError("the contract of reliability.mtbf says at_least alone: its bounds decide, or nothing does")
        if self.samples_at_least and self.metric is None:
            raise ValueError("samples_at_least is for a metric")
        self._refuse_impossible()
        return self

    def _refuse_impossible(self) -> None:
        """A number that nothing measured can be, so that all or nothing would reach it: 85 for a share of 0.85."""
        for key, bound in self.layers.contract.bounds.items() if self.layers.contract is not None else ():
            possible = metric(self.metric).possible if self.metric else _POSSIBLE_OF_RULE.get(self.rule or "")
            if possible is not None and not possible.within(bound):
                unit = metric(self.metric).unit if self.metric else ""
                raise ValueError(
                    f"layers.contract.{key}: should be what {self.metric or self.rule} can be"
                    f"{f' in {unit}' if unit else ''} ({possible}), not {bound:g}"
                )

    @property
    def unconditional(self) -> bool:
        """Whether it is required of every run, whatever its size and its access tier; the device may be named."""
        small = self.ranks_at_least <= SMALLEST_GROUP and self.nodes_at_least == 1
        always = set(self.tiers) == set(TIERS) and not self.beside_baseline
        return self.severity == "required" and always and small


class PolicyModel(Strict):
    """The whole of a policy file."""

    name: Name
    purpose: Text = ""
    signable: bool = True
    exclude_at_most: Annotated[float, Field(ge=0, le=0.5, strict=True, allow_inf_nan=False)] = 0.10
    terms: Terms = Terms()
    checks: Annotated[tuple[Check, ...], Field(min_length=1, max_length=500)]

    @model_validator(mode="after")
    def _whole(self) -> "PolicyModel":
        names = [check.check for check in self.checks]
        doubled = sorted({name for name in names if names.count(name) > 1})
        if doubled:
            raise ValueError(f"check {doubled[0]} stands twice")
        self._refuse_more_nodes_than_bought()
        if not any(_demands_whole_evidence(check) for check in self.checks):
            raise ValueError("no check with rule: evidence.complete, each: cluster, severity: required")
        if self.signable:
            self._refuse_lax()
        return self

    def _refuse_more_nodes_than_bought(self) -> None:
        bought = self.terms.nodes
        for check in self.checks if bought is not None else ():
            wanted = check.layers.contract.at_least if check.rule == "node.count" and check.layers.contract else None
            if bought is not None and wanted is not None and wanted > bought:
                raise ValueError(f"{check.check} asks for {wanted:g} nodes, terms.nodes says that {bought} were bought")

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
