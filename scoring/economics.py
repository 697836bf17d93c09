"""What the cluster gives for its money: utilisation, projected goodput, and USD a useful PFLOP-day."""

from collections.abc import Iterable

import msgspec

from ..evidence import Promised, Run
from .derived import Figures, straggler_loss
from .goodput import goodput, job_mtbf_s
from .reliability import failures_seen, node_days
from .statistics import median_interval, projected_rate
from .verdict import Economics, Interval
from .words import counted, figure, three_digits

# From a failure until training goes on (noticed, rescheduled, loaded), until a run measures it: operators of large
# clusters report 10 to 15 minutes.
ASSUMED_RECOVERY_S = 900.0
HOURS_A_DAY = 24


def economics(run: Run, figures: Figures, excluded: tuple[str, ...]) -> Economics:
    """The figures that can be had; for each of the others a line that says what it needs."""
    missing: list[str] = []
    nodes = [node for node in run.header.promised if node.node not in excluded]
    subjects = [f"{node.node}/{rank}" for node in nodes for rank in node.ranks]
    mfu = _across(figures, "burn_in.mfu", subjects, "share", missing)
    if mfu is None:
        missing.append("MFU: a burn-in on every accelerator, and a reference for its kind")
    speed = _across(figures, "burn_in.model_tflops", subjects, "TFLOPS", missing)
    projected = _goodput(run, figures, len(nodes), missing)
    return Economics(
        mfu=mfu,
        goodput=projected,
        usd_per_pflop_day=_money(
            run=run, figures=figures, speed=speed, projected=projected, nodes=nodes, missing=missing
        ),
        missing=tuple(dict.fromkeys(missing)),
    )


def _across(
    figures: Figures, metric: str, subjects: list[str], unit: str, missing: list[str]
) -> Interval | None:  # fmt: skip
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


def _peaks(figures: Figures, subjects: list[str]) -> str:
    """The peaks that shares of these accelerators are of, each with its source."""
    kinds = {kind.key: kind for subject in subjects if (kind := figures.facts.accelerator(subject)) is not None}
    told = []
    for kind in kinds.values():
        peak = kind.value("matmul.tflops", {"dtype": "bf16"}, "peak")
        if peak is not None:
            from_whom = figures.facts.references.sources[peak.source].name
            told.append(f"{kind.key}: dense bf16 peak {figure(peak.value, 'TFLOPS')} ({from_whom})")
    return "; ".join(told)


def _goodput(run: Run, figures: Figures, nodes: int, missing: list[str]) -> Interval | None:
    """Daly's share with the slowest measured save, over the credible interval of the failure rate."""
    save = _slowest_save(run, figures)
    if save is None or save <= 0 or not nodes:
        missing.append("Goodput: a measured checkpoint save")
        return None
    rate = projected_rate(failures_seen(run), node_days(run))
    low, middle, high = (
        goodput(save, job_mtbf_s(nodes, at), ASSUMED_RECOVERY_S) for at in (rate.high, rate.point or 0.0, rate.low)
    )
    basis = (
        f"saves of {three_digits(save)} s as measured, recovery in {ASSUMED_RECOVERY_S / 60:.0f} min assumed, "
        f"{three_digits((rate.point or 0.0) * 1000)} failures per 1000 node-days projected, {counted(nodes, 'node')}"
    )
    return Interval(value=middle, low=low, high=high, unit="share", basis=basis)


def _slowest_save(run: Run, figures: Figures) -> float | None:
    """Seconds of the slowest save: the burn-in's own, else the checkpoint probe's."""
    places: Iterable[tuple[str, str]] = [("burn_in.checkpoint", "cluster")]
    for choice in (places, [("checkpoint.save", name) for name in run.header.filesystems]):
        values = [value.value for metric, subject in choice for value in figures.of(metric, subject)]
        if values and None not in values:
            return max(value for value in values if value is not None)
    return None


def _money(
    *,
    run: Run,
    figures: Figures,
    speed: Interval | None,
    projected: Interval | None,
    nodes: list[Promised],
    missing: list[str],
) -> Interval | None:
    """price x 24 h / (PFLOPS an accelerator x goodput x (1 - straggler loss) x usable / paid nodes)."""
    price = run.header.price_per_gpu_hour
    loss = straggler_loss(figures, [f"{node.node}/{rank}" for node in nodes for rank in node.ranks])
    if price is None:
        missing.append("Money per useful PFLOP-day: the price (--price USD_PER_GPU_HOUR)")
    if speed is None or loss is None:
        missing.append("Money per useful PFLOP-day: a burn-in on every accelerator")
    if price is None or speed is None or projected is None or loss is None:
        return None

    def usd(tflops: float | None, share: float | None) -> float | None:
        if tflops is None or share is None:
            return None
        useful = tflops / 1000 * share * (1 - loss) * len(nodes) / len(run.header.promised)
        return price * HOURS_A_DAY / useful if useful > 0 else None

    return Interval(
        value=usd(speed.value, projected.value),
        low=usd(speed.high, projected.high),
        high=usd(speed.low, projected.low),
        unit="USD",
        basis=f"{three_digits(price)} USD an accelerator-hour, model FLOPs of the burn-in, one run",
    )


def rounded(figure: Interval | None, digits: int = 6) -> Interval | None:
    """The same interval with figures that read alike on every platform."""
    if figure is None:
        return None
    low, middle, high = (
        None if n is None else float(f"{n:.{digits}g}") for n in (figure.low, figure.value, figure.high)
    )
    return msgspec.structs.replace(figure, low=low, value=middle, high=high)
