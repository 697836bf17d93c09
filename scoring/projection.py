"""What a rental gives for its money: goodput, effective throughput, USD a PFLOP-day, and a stated training run.

The page's calculator has the same formulas (templates/page.js); a browser test holds the two together.

    goodput               the exact share of scoring/goodput.py, with a recovery of recovery_s + wait_s
    useful PFLOPS         TFLOPS an accelerator / 1000 x accelerators x goodput x (1 - straggler loss)
    effective throughput  MFU x goodput x (1 - straggler loss) x accelerators that train / that are paid for
    USD a PFLOP-day       USD a day x rental / (rental - set-up) / useful PFLOPS
    time, cost of a run   FLOPs / useful FLOPS; USD a day x days, and the set-up hours before it

Waiting `wait_s` for another node stops the whole job, also where a second node fails meanwhile: e^(-(R+T)/M), the
chance that none of N nodes is away when each is away for R+T after a failure (M/G/infinity), is in the exact share.
"""

import math
from typing import Literal

from msgspec import Struct

from .goodput import SECONDS_A_DAY, daly_interval_s, goodput, job_mtbf_s

HOURS_A_DAY = 24.0
HOURS_A_MONTH = 730.0
PFLOP = 1e15
Spare = Literal["hot", "cold", "none"]  # how a failed node is made up for


class Situation(Struct, frozen=True, kw_only=True):
    """What a projection rests on. `accelerators` train on `nodes`; `paid_accelerators` are rented, and beside them
    `spare_nodes` with as many accelerators each as those that train.

    `tflops` are model TFLOPS an accelerator, `mfu` the same over the peak. Other costs: `usd_per_month`, and
    `setup_hours` that are paid before training begins, out of `rental_hours`.
    """

    nodes: int
    accelerators: float
    paid_accelerators: float
    spare_nodes: int = 0
    save_s: float
    recovery_s: float
    wait_s: float
    failures_per_node_day: float
    tflops: float | None = None
    mfu: float | None = None
    straggler_loss: float = 0.0
    usd_per_gpu_hour: float | None = None
    usd_per_month: float = 0.0
    setup_hours: float = 0.0
    rental_hours: float = 12 * HOURS_A_MONTH
    run_flops: float | None = None

    @property
    def mtbf_s(self) -> float:
        """Mean time between failures of the job."""
        return job_mtbf_s(self.nodes, self.failures_per_node_day)

    @property
    def rented_accelerators(self) -> float:
        """All that is paid for, the spares that stand ready with it."""
        return self.paid_accelerators + self.spare_nodes * self.accelerators / self.nodes

    @property
    def usd_per_day(self) -> float | None:
        """Rent and monthly costs of one day; None without a price."""
        if self.usd_per_gpu_hour is None:
            return None
        return HOURS_A_DAY * (self.usd_per_gpu_hour * self.rented_accelerators + self.usd_per_month / HOURS_A_MONTH)


class Outlook(Struct, frozen=True, kw_only=True):
    """What it comes to. None is what an input is missing for, and what never ends or never gets done."""

    goodput: float
    interval_s: float | None  # the best work between two checkpoints; None where nothing fails
    effective: float | None
    usd_per_pflop_day: float | None
    run_s: float | None
    run_usd: float | None


def outlook(at: Situation) -> Outlook:
    """The projection. Raises ValueError where a save takes no time, or a rate or time is below 0."""
    share = goodput(at.save_s, at.mtbf_s, at.recovery_s + at.wait_s)
    keeps = share * (1 - at.straggler_loss)
    useful = at.tflops / 1000 * at.accelerators * keeps if at.tflops is not None else 0.0
    a_day = at.usd_per_day
    run_s = _over(at.run_flops, useful * PFLOP)
    return Outlook(
        goodput=share,
        interval_s=None if math.isinf(at.mtbf_s) else daly_interval_s(at.save_s, at.mtbf_s),
        effective=None if at.mfu is None else at.mfu * keeps * at.accelerators / at.rented_accelerators,
        usd_per_pflop_day=_over(None if a_day is None else a_day * _with_setup(at), useful),
        run_s=run_s,
        run_usd=None if run_s is None or a_day is None else a_day * (run_s / SECONDS_A_DAY + at.setup_hours / 24),
    )


def paid_a_day(at: Situation) -> float:
    """What a day costs, in USD; without a price in accelerators."""
    return at.rented_accelerators if at.usd_per_day is None else at.usd_per_day


def hot_spare_pays_from_s(hot: Situation, waiting: Situation) -> float:
    """The wait for another node from which on it is cheaper to pay for spares that stand ready.

    Waiting T costs the factor e^(T/M), spares cost what is paid for with them over what is paid for without.
    """
    return hot.mtbf_s * math.log(paid_a_day(hot) / paid_a_day(waiting))


def _with_setup(at: Situation) -> float:
    """What a day that trains costs more, because days before it were paid too."""
    return at.rental_hours / (at.rental_hours - at.setup_hours)


def _over(amount: float | None, rate: float) -> float | None:
    """The quotient, where it is a number: a rate of nothing gets nothing done."""
    if amount is None or not rate > 0:
        return None
    found = amount / rate
    return found if math.isfinite(found) else None


def spares_needed(nodes: int, failures_per_node_day: float, replacement_hours: float, sure: float = 0.95) -> int:
    """The fewest nodes beside `nodes` with which so many run for `sure` of the time.

    A node is away for the replacement time T after each failure at rate L, so for LT / (1 + LT) of its time, each on
    its own: the least S with P(Binomial(nodes + S, that share) <= S) >= sure.
    """
    from scipy.special import bdtr

    away = failures_per_node_day * replacement_hours / HOURS_A_DAY
    away /= 1 + away

    def enough(spares: int) -> bool:
        return float(bdtr(spares, nodes + spares, away)) >= sure

    high = 1
    while not enough(high):
        high *= 2
    low = -1 if high == 1 else high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
