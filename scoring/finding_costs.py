"""What each finding costs a month, derived in words: what is taken out, who holds the others back, slow saves.

A cost is the rent of the accelerators that it leaves without work. What nobody can derive from the evidence has none.
"""

from collections.abc import Iterable, Iterator, Sequence

from .derived import Figures
from .out_of_use import nodes_out
from .projection import HOURS_A_MONTH, outlook
from .rental import Rental
from .scope import nodes_of
from .verdict import Finding, FindingCost, Interval
from .words import counted, natural, percent, several, three_digits

_SAVING = ("checkpoint.save", "burn_in.checkpoint")


def finding_costs(
    rental: Rental, figures: Figures, excluded: Sequence[str], findings: Iterable[Finding]
) -> tuple[FindingCost, ...]:
    """The dearest first; none without a price. No rent is counted twice: what is taken out holds nobody back."""
    if rental.price is None:
        return ()
    out = nodes_out(tuple(excluded))
    remaining = [
        each for each in findings if each.result in ("fail", "warn") and out.isdisjoint(nodes_of(each.subject))
    ]
    found = [
        *_taken_out(rental, figures, tuple(excluded)),
        *_straggler(rental, figures, remaining),
        *_slow_save(rental, remaining),
    ]
    return tuple(sorted(found, key=lambda cost: (-(cost.usd.value or 0.0), cost.subject)))


def _taken_out(rental: Rental, figures: Figures, excluded: tuple[str, ...]) -> Iterator[FindingCost]:
    """Each node that is out, for itself, a device or a link: its accelerators are paid for and stand still."""
    for name in sorted(nodes_out(excluded), key=natural):
        node = figures.node(name)
        if node is not None:
            why = "taken out" if name in excluded else f"taken out with {several(_parts_of(name, excluded), 2)}"
            basis = f"{why}: {counted(len(node.ranks), 'accelerator')} paid for {_at(rental)} that nobody uses"
            yield FindingCost(subject=name, usd=_usd(_rent(rental, len(node.ranks)), basis))


def _parts_of(node: str, excluded: Iterable[str]) -> list[str]:
    return [each for each in excluded if node in nodes_of(each)]


def _straggler(rental: Rental, figures: Figures, remaining: Sequence[Finding]) -> Iterator[FindingCost]:
    """Everybody waits for the slowest: its loss over the rent of all that trains. The next slowest costs nothing."""
    loss = rental.loss or 0.0
    # The check of the whole was made with those that are taken out, too: it holds where the loss does without them.
    whole = [e for e in remaining if e.metric == "burn_in.straggler_loss" and loss > (e.threshold or 0.0)]
    checks = _checks([e for e in remaining if e.metric == "burn_in.compute"] + whole)
    if not checks or not loss:
        return
    slowest = max(rental.subjects, key=lambda subject: _compute_s(figures, subject))
    usd = loss * _rent(rental, len(rental.subjects))
    basis = (
        f"all wait for the slowest: {percent(loss)} of each step, of "
        f"{counted(len(rental.subjects), 'accelerator')} {_at(rental)}"
    )
    yield FindingCost(subject=slowest, checks=checks, usd=_usd(usd, basis))


def _compute_s(figures: Figures, subject: str) -> float:
    return max((value.value or 0.0 for value in figures.of("burn_in.compute", subject)), default=0.0)


def _slow_save(rental: Rental, remaining: Sequence[Finding]) -> Iterator[FindingCost]:
    """The goodput that saves as quick as expected would give, less what they give, over the rent of all that trains.

    A job waits for its slowest save alone.
    """
    slow = [(each, took) for each in remaining if each.metric in _SAVING and (took := _seconds(each))]
    if not slow or not rental.subjects:
        return
    worst, (seen, most) = max(slow, key=lambda one: one[1])
    spare, rent = rental.spare, _rent(rental, len(rental.subjects))

    def lost(end: str) -> float:
        quick, late = (outlook(rental.situation(spare, end=end, save_s=save_s)) for save_s in (most, seen))
        return max(0.0, quick.goodput - late.goodput)

    basis = (
        f"goodput {percent(lost('value'))} lower than with saves of {three_digits(most)} s, of "
        f"{counted(len(rental.subjects), 'accelerator')} {_at(rental)}"
    )
    few, usual, many = (lost(end) * rent for end in ("high", "value", "low"))
    low, high = min(few, usual, many), max(few, usual, many)
    usd = Interval(value=usual, low=low, high=high, unit="USD", basis=basis)
    yield FindingCost(subject=worst.subject, checks=_checks([each for each, _ in slow]), usd=usd)


def _seconds(each: Finding) -> tuple[float, float] | None:
    """What a save took and what it may take, where it took longer."""
    seen, most = each.observed, each.threshold
    if isinstance(seen, bool) or not isinstance(seen, int | float) or most is None or not seen > most > 0:
        return None
    return float(seen), most


def _checks(findings: Sequence[Finding]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(each.check for each in findings))


def _rent(rental: Rental, accelerators: int) -> float:
    return accelerators * (rental.price or 0.0) * HOURS_A_MONTH


def _at(rental: Rental) -> str:
    return f"at {three_digits(rental.price or 0.0)} USD an hour, {HOURS_A_MONTH:.0f} h a month"


def _usd(amount: float, basis: str) -> Interval:
    return Interval(value=amount, low=None, high=None, unit="USD", basis=basis)
