"""One run in a comparison: what it is, how it was judged, and its figures."""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from math import log
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from ..evidence import HwlotteryError, Run, RunHeader
from .comparison_figures import COMPARED, Compared, Figure, Lacking, Settings, figures_of
from .delivery import Delivery, judged_delivery
from .derived import Figures
from .facts import Facts
from .joined import standing
from .out_of_use import nodes_out
from .policy import policy_from_text
from .projection import HOURS_A_DAY, Situation, outlook
from .provider_record import provider_of
from .rental import rental_of
from .score import score_run
from .values import Values
from .verdict import Verdict

MONEY = Compared(
    key="money", title="Cost of a useful PFLOP-day", metric="burn_in.model_tflops", each="cluster", probe="burn_in",
    category="training", same_kind=False,
)  # fmt: skip
USEFUL = Compared(
    key="useful", title="Useful throughput a paid accelerator", metric="burn_in.model_tflops", each="cluster",
    probe="burn_in", category="training", same_kind=False,
)  # fmt: skip
EVERYTHING = (MONEY, USEFUL, *COMPARED)
Effect = Literal["forbids", "may explain", "noted"]
_FACTS = (
    "accelerator.name",
    "accelerator.memory",
    "accelerator.power_limit",
    "software.torch",
    "software.cuda",
    "software.nccl",
    "software.driver",
)
_OF_95 = 2 * 1.959964  # a 95 % interval is so many standard errors wide


class ComparisonError(HwlotteryError):
    """Runs that cannot be put side by side; the message is one line that says which and why."""


class Side(Struct, frozen=True, kw_only=True):
    """What a comparison needs of a run; not its records, which may be gigabytes.

    `methods` are the versions of each probe, `machines` the identities of the nodes' hardware. The verdict is without
    its findings. `barred` says why nothing may be compared: records are not whole.
    """

    path: Path
    header: RunHeader
    started: datetime | None
    verdict: Verdict
    methods: dict[str, tuple[str, ...]]
    tiers: tuple[str, ...]
    machines: frozenset[str]
    settings: dict[str, Settings | Lacking]
    facts: dict[str, str]
    delivery: Delivery | None = None
    barred: str = ""

    @property
    def accelerators(self) -> int:
        """How many accelerators were promised."""
        return sum(len(node.ranks) for node in self.header.promised)

    def most(self, key: str) -> str:
        """The value that a fact has on most subjects, and how many others there are; "not recorded" without any."""
        return self.facts.get(key, "not recorded")


def side_of(run: Run) -> Side:
    """A run judged by its own policy, with its figures. Raises ComparisonError where it cannot be judged."""
    try:
        verdict = score_run(run)
        record = provider_of(run.path, None)
        delivery = judged_delivery(run, record) if record else None
    except HwlotteryError as error:
        raise ComparisonError(f"{run.path}: {error}") from error
    stands = standing(run)
    figures = Figures(stands.header, Values(stands), Facts(stands))
    out = _left_out(verdict)
    settings = {what.key: figures_of(what, figures, out) for what in COMPARED}
    useful, money = _from_training(run, figures, out, settings["training"])
    return Side(
        path=run.path, header=run.header, started=run.started, verdict=msgspec.structs.replace(verdict, findings=()),
        methods=_methods(run), tiers=_tiers(run, figures), machines=_machines(run),
        settings={**settings, "useful": useful, "money": money}, facts=_facts(run), delivery=delivery,
        barred=_barred(run, verdict),
    )  # fmt: skip


def _methods(run: Run) -> dict[str, tuple[str, ...]]:
    found: dict[str, set[str]] = {}
    for plan in run.plans:
        found.setdefault(plan.probe, set()).add(plan.method)
    return {probe: tuple(sorted(methods)) for probe, methods in found.items()}


def _tiers(run: Run, figures: Figures) -> tuple[str, ...]:
    """Those that were recorded: a node that never joined has none."""
    nodes = [node.node for node in run.header.promised if figures.facts.knows_tier(node.node)]
    return tuple(sorted({tier for node in nodes for tier in figures.facts.tiers(node)}))


def _machines(run: Run) -> frozenset[str]:
    """By its facts, else by run.json."""
    facts = frozenset(str(fact.value) for fact in run.facts if fact.key == "hardware.identity")
    return facts or frozenset(each for segment in run.header.segments for each in segment.hardware.values())


def _left_out(verdict: Verdict) -> tuple[str, ...]:
    """The nodes that would be out. Where that is too much, and the run NO-GO, only those that do not answer: the rest
    is what was delivered."""
    if verdict.verdict != "NO_GO":
        return tuple(sorted(nodes_out(verdict.exclude)))
    silent = (each for each in verdict.findings if each.check == "node.responds" and each.result == "fail")
    return tuple(each.excludes for each in silent if each.excludes)


def _facts(run: Run) -> dict[str, str]:
    """What most subjects say of themselves."""
    counts: dict[str, Counter[str]] = {key: Counter() for key in _FACTS}
    for fact in run.facts:
        if fact.key in counts:
            counts[fact.key][str(fact.value)] += 1
    return {key: _most(count) for key, count in counts.items() if count}


def _most(count: Counter[str]) -> str:
    value, rest = count.most_common(1)[0][0], len(count) - 1
    return value if not rest else f"{value} and {rest} more"


def _barred(run: Run, verdict: Verdict) -> str:
    """Why a run cannot be compared: what is gone from it may be what was bad."""
    if run.problems:
        return "its records are not whole"
    found = [finding for finding in verdict.findings if finding.check == "evidence.complete"]
    return "its records are not whole" if any(finding.result != "pass" for finding in found) else ""


def _from_training(
    run: Run, figures: Figures, out: tuple[str, ...], training: Settings | Lacking
) -> tuple[Settings | Lacking, Settings | Lacking]:
    """Useful throughput, and what a useful PFLOP-day costs.

    Useful throughput is model TFLOPS that make progress, an accelerator paid: 24 h of one over what a PFLOP-day costs
    where an accelerator-hour costs 1 USD and nothing else is paid.
    """
    if isinstance(training, Lacking):
        return training, training
    rental = rental_of(run, figures, out, policy_from_text(run.header.policy.text, "run.json policy").terms)
    if not rental.save_s or not rental.subjects or rental.speed is None or rental.loss is None or len(training) != 1:
        why = Lacking("; ".join(rental.missing) or "several burn-ins")
        return why, why
    ends = [rental.situation(rental.spare, end=end) for end in ("low", "value", "high")]
    alone = {"usd_per_gpu_hour": 1.0, "usd_per_month": 0.0, "setup_hours": 0.0}
    useful = _figures(training, [msgspec.structs.replace(end, **alone) for end in ends], 1000 * HOURS_A_DAY)
    if rental.price is None:
        return useful, Lacking(f"no price: {rental.no_price}")
    return useful, _figures(training, ends)


def _figures(training: Settings, ends: Sequence[Situation], over: float | None = None) -> Settings | Lacking:
    """The cost of a PFLOP-day, or so much over it, with the error behind its bad and its good end."""
    key, speed = next(iter(training.items()))
    low, value, high = (outlook(end).usd_per_pflop_day for end in ends)
    if not value:
        return Lacking("nothing gets done between failures")
    error = abs(log(low / high)) / _OF_95 if low and high else 0.0
    made = value if over is None else over / value
    return {key: Figure(value=made, error=error, degrees=speed.degrees, subjects=speed.subjects)}
