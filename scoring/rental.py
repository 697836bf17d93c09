"""What a run says of a rental: what trains and is paid for, how fast, how often it fails, how long saves and recoveries
take. Measured where it was; what is assumed says so."""

from collections.abc import Iterable, Sequence

from msgspec import Struct

from ..evidence import Run
from .costs import COLD_SPARE_HOURS, REPLACEMENT_HOURS, Costs, costs_of
from .derived import Figures, straggler_loss
from .out_of_use import nodes_out
from .policy_terms import Terms
from .projection import Situation, Spare, spares_needed
from .reliability import failures_seen, node_days
from .statistics import Bounds, median_interval, projected_rate
from .verdict import Interval
from .words import counted, figure, three_digits

# From a failure until training goes on, where nobody says: noticed and rescheduled, then the checkpoint loaded as
# measured, else in 5 min. Operators of large clusters report 10 to 15 minutes in all.
NOTICED_S = 600.0
ASSUMED_LOAD_S = 300.0
_NO_PRICE = "the price (--price USD_PER_GPU_HOUR)"
_NO_GPUS = "GPUs: the price is one of a GPU and hour, and none was rented"


class Wait(Struct, frozen=True, kw_only=True):
    """How long a job waits for something, and who says so."""

    seconds: float
    source: str


class Rental(Struct, frozen=True, kw_only=True):
    """The inputs of the economics. `subjects` are the accelerators that train: none of a node that is out."""

    subjects: tuple[str, ...]
    paid_accelerators: int
    price: float | None
    no_price: str  # what it takes to have one
    mfu: Interval | None
    speed: Interval | None
    loss: float | None
    save_s: float | None
    recovery: Wait
    waits: dict[Spare, Wait]
    rate: Bounds
    costs: Costs
    run_flops: float | None

    @property
    def nodes(self) -> int:
        """Nodes that train."""
        return len({subject.partition("/")[0] for subject in self.subjects})

    @property
    def spare(self) -> Spare:
        """How a failed node is made up for: as stated, else by one that is brought in and was not paid for before."""
        return self.costs.spare or "cold"

    def spare_nodes(self, spare: Spare, failures_per_node_day: float) -> int:
        """The spares that are paid for: hot ones stand ready, one at least, and enough while a node is replaced."""
        if spare != "hot":
            return 0
        return max(1, spares_needed(self.nodes, failures_per_node_day, self.waits["none"].seconds / 3600))

    def situation(self, spare: Spare, *, end: str = "value", save_s: float | None = None) -> Situation:
        """The projection's inputs: as they are, or with speed and failure rate at their `low` or `high` end, which is
        the bad or the good one. Raises ValueError where no save was measured."""
        save = self.save_s if save_s is None else save_s
        if not save:
            raise ValueError("no save was measured")
        rate = {"low": self.rate.high, "value": self.rate.point or 0.0, "high": self.rate.low}[end]
        return Situation(
            nodes=self.nodes,
            accelerators=float(len(self.subjects)),
            paid_accelerators=float(self.paid_accelerators),
            spare_nodes=self.spare_nodes(spare, rate),
            save_s=save,
            recovery_s=self.recovery.seconds,
            wait_s=self.waits[spare].seconds,
            failures_per_node_day=rate,
            tflops=getattr(self.speed, end) if self.speed and self.loss is not None else None,
            mfu=getattr(self.mfu, end) if self.mfu and self.loss is not None else None,
            straggler_loss=self.loss or 0.0,
            usd_per_gpu_hour=self.price,
            usd_per_month=self.costs.usd_per_month,
            setup_hours=self.costs.setup_hours,
            rental_hours=self.costs.rental_hours,
            run_flops=self.run_flops,
        )

    @property
    def missing(self) -> tuple[str, ...]:
        """A line for each figure that cannot be had, with what it needs."""
        lines = []
        if not self.subjects:
            lines.append("MFU, goodput and money per useful PFLOP-day: a node that can be used; all would be taken out")
        elif self.mfu is None:
            lines.append("MFU: a burn-in on every accelerator, and a reference for its kind")
        if not self.save_s:
            lines.append("Goodput: a measured checkpoint save")
        if self.price is None:
            lines.append(f"Money per useful PFLOP-day: {self.no_price}")
        if self.subjects and (self.speed is None or self.loss is None):
            lines.append("Money per useful PFLOP-day: a burn-in on every accelerator")
        return tuple(lines)


def rental_of(run: Run, figures: Figures, excluded: Sequence[str], terms: Terms | None) -> Rental:
    """The inputs of the economics of a run. Raises CostsError."""
    costs = costs_of(run.header.costs)
    everyone = [f"{node.node}/{rank}" for node in run.header.promised for rank in node.ranks]
    out = nodes_out(tuple(excluded))
    subjects = tuple(subject for subject in everyone if subject.partition("/")[0] not in out)
    return Rental(
        subjects=subjects,
        paid_accelerators=len(everyone),
        price=run.header.price_per_gpu_hour if run.header.device == "cuda" else None,
        no_price=_NO_PRICE if run.header.price_per_gpu_hour is None else _NO_GPUS,
        mfu=_across(figures, "burn_in.mfu", subjects, "share"),
        speed=_across(figures, "burn_in.model_tflops", subjects, "TFLOPS"),
        loss=straggler_loss(figures, subjects),
        save_s=_slowest(figures, [("checkpoint.save", run.header.filesystems), ("burn_in.checkpoint", ["cluster"])]),
        recovery=_recovery(run, figures, costs),
        waits=_waits(costs, terms or Terms()),
        rate=projected_rate(failures_seen(run), node_days(run)),
        costs=costs,
        run_flops=run.header.run_flops,
    )


def _across(figures: Figures, metric: str, subjects: Sequence[str], unit: str) -> Interval | None:
    """The median over accelerators with its interval; None unless every one of them has a value."""
    numbers = [value.value for subject in subjects for value in figures.of(metric, subject)]
    whole = [number for number in numbers if number is not None]
    if not whole or len(whole) < len(numbers) or len(whole) < len(subjects):
        return None
    low, middle, high = median_interval(whole)
    alone = len(whole) == 1  # one number has no interval
    basis = f"burn-in, median over {counted(len(whole), 'accelerator')}"
    return Interval(
        value=middle, low=None if alone else low, high=None if alone else high, unit=unit, basis=basis,
        reference=_peaks(figures, subjects) if unit == "share" else "",
    )  # fmt: skip


def _peaks(figures: Figures, subjects: Sequence[str]) -> str:
    """The peaks that shares of these accelerators are of, each with its source."""
    kinds = {kind.key: kind for subject in subjects if (kind := figures.facts.accelerator(subject)) is not None}
    told = []
    for kind in kinds.values():
        peak = kind.value("matmul.tflops", {"dtype": "bf16"}, "peak")
        if peak is not None:
            from_whom = figures.facts.references.source(kind, peak).name
            told.append(f"{kind.key}: dense bf16 peak {figure(peak.value, 'TFLOPS')} ({from_whom})")
    return "; ".join(told)


def _slowest(figures: Figures, choices: Iterable[tuple[str, Sequence[str]]]) -> float | None:
    """Seconds of the slowest of all that was to be measured: a job waits for the slowest. None where one of them did
    not come, for the one that did not come may be the slowest."""
    values = [value.value for metric, on in choices for subject in on for value in figures.of(metric, subject)]
    whole = [value for value in values if value is not None]
    return max(whole) if whole and len(whole) == len(values) else None


def _recovery(run: Run, figures: Figures, costs: Costs) -> Wait:
    if costs.recovery_minutes is not None:
        told = f"{three_digits(costs.recovery_minutes)} min by the file of costs"
        return Wait(seconds=costs.recovery_minutes * 60, source=told)
    load = _slowest(figures, [("checkpoint.read_back", run.header.filesystems)])
    noticed = f"{NOTICED_S / 60:.0f} min assumed until it is noticed and rescheduled"
    if load is None:
        return Wait(seconds=NOTICED_S + ASSUMED_LOAD_S, source=f"{noticed}, {ASSUMED_LOAD_S / 60:.0f} to load, assumed")
    return Wait(seconds=NOTICED_S + load, source=f"{noticed}, {three_digits(load)} s to load as measured")


def _waits(costs: Costs, terms: Terms) -> dict[Spare, Wait]:
    """How long a job waits for another node: at once, a spare to be brought in, or what the contract gives."""
    stated = "the file of costs"
    cold = costs.cold_spare_hours
    none, source = costs.replacement_hours, stated
    if none is None and terms.replacement_hours is not None:
        none, source = terms.replacement_hours, "the policy's terms"
    return {
        "hot": Wait(seconds=0.0, source="it stands ready"),
        "cold": _wait(cold, stated, COLD_SPARE_HOURS),
        "none": _wait(none, source, REPLACEMENT_HOURS),
    }


def _wait(hours: float | None, source: str, otherwise: float) -> Wait:
    if hours is None:
        return Wait(seconds=otherwise * 3600, source="assumed")
    return Wait(seconds=hours * 3600, source=source)
