"""A claim under the SLA: outages by serial number, the clause, and the days that are left. No price stands in it."""

from collections.abc import Iterator
from datetime import UTC, date, datetime

from msgspec import Struct

from ..evidence import HwlotteryError, Run
from ..scoring.outages import Outage, claim_by, hours, outages
from ..scoring.provider_record import ProviderRecord
from ..scoring.verdict import Verdict
from .hardware import serial_of
from .markdown import rendered
from .measured import Measured
from .numbers import NOTHING, significant, utc
from .plain_text import natural, printable
from .rental import shape


class NoClaim(HwlotteryError):
    """There is nothing to claim, or nothing to claim it by."""


class Line(Struct, frozen=True, kw_only=True):
    """One outage as a row. `left` says how many days are left to claim it."""

    begins: str
    ends: str
    hours: str
    clause: str
    source: str
    claim_by: str
    left: str
    why: str


class Machine(Struct, frozen=True, kw_only=True):
    """The outages of one piece of hardware, whatever its nodes were called, and the hours they cover together."""

    serial: str
    names: str
    hours: str
    lines: tuple[Line, ...]


class Claim(Struct, frozen=True, kw_only=True):
    """The whole claim, as of a day."""

    about: tuple[tuple[str, str], ...]
    caveats: tuple[str, ...]
    machines: tuple[Machine, ...]
    clauses: tuple[tuple[str, str], ...]


def claim(run: Run, verdict: Verdict, record: ProviderRecord | None, today: date) -> Claim:
    """The claim as of a day. Raises NoClaim without a provider's record, and where no outage is known."""
    if record is None:
        raise NoClaim(
            f"no claim without {run.path}/provider.yaml: `hwlottery export {run.path} --format provider-template` "
            "prints one to fill in, or give --provider-record FILE"
        )
    measured = Measured(run)
    trials = {trial for each in verdict.findings for trial in each.evidence}
    since = {trial: time for trial in trials if (time := measured.trial_time(trial))}
    now = datetime.combine(today, datetime.max.time(), UTC)
    found = [each for each in outages(run, verdict, record, since) if each.start <= now]
    if not found:
        raise NoClaim("no claim: no outage of a node is known, neither from the run nor from provider.yaml")
    used = {each.clause for each in found if each.clause}
    return Claim(
        about=tuple(_about(run, record, today)),
        caveats=(*verdict.caveats, *(["The record of this run is not whole."] if run.problems else [])),
        machines=tuple(_machines(measured, found, record, now)),
        clauses=tuple((name, text) for name, text in record.clauses.items() if name in used),
    )


def as_markdown(found: Claim) -> str:
    """The claim as Markdown."""
    return rendered("claim.md.j2", claim=found)


def _about(run: Run, record: ProviderRecord, today: date) -> Iterator[tuple[str, str]]:
    header, sla = run.header, record.sla
    parts = (record.provider or header.provider, record.cluster or header.cluster, shape(run))
    yield "Cluster", " · ".join(part for part in parts if part)
    yield "As of", f"{today}"
    yield "Measured", f"{utc(run.started)} to {utc(run.ended)}, run {header.run_id}"
    if sla.availability is not None:
        yield "Promised availability", f"{sla.availability * 100:g} %"
    yield "To be claimed", f"within {sla.claim_window_days} days" if sla.claim_window_days else "no window is stated"


def _machines(measured: Measured, found: list[Outage], record: ProviderRecord, now: datetime) -> Iterator[Machine]:
    by_serial: dict[str, list[Outage]] = {}
    for each in found:
        by_serial.setdefault(_serial(measured, each, record), []).append(each)
    for serial, mine in sorted(by_serial.items(), key=lambda one: natural(one[0])):
        names = sorted({each.node for each in mine}, key=natural)
        yield Machine(
            serial=serial,
            names=", ".join(printable(name, 80) for name in names),
            hours=f"{significant(hours(mine, now))} h",
            lines=tuple(_line(each, record, now) for each in mine),
        )


def _serial(measured: Measured, each: Outage, record: ProviderRecord) -> str:
    """The hardware that was behind the node when the outage began: not the run's, where it was replaced between."""
    seen = measured.run.started or each.start
    mine = ((swap.replaced, swap) for swap in record.replaced if swap.node == each.node and swap.replaced)
    swaps = sorted(mine, key=lambda one: one[0])
    for when, swap in swaps:
        if each.start < when <= seen:
            return f"serial {swap.serial_out}" if swap.serial_out else f"{each.node} before {when:%Y-%m-%d}"
    for when, swap in reversed(swaps):
        if seen < when <= each.start:
            return f"serial {swap.serial_in}" if swap.serial_in else f"{each.node} since {when:%Y-%m-%d}"
    return serial_of(measured, each.node)


def _line(each: Outage, record: ProviderRecord, now: datetime) -> Line:
    last = claim_by(each, record.sla.claim_window_days)
    return Line(
        begins=_moment(each.start),
        ends=_moment(each.end) if each.end else "goes on",
        hours=significant(hours([each], now)),
        clause=each.clause or NOTHING,
        source=each.source,
        claim_by=str(last) if last else NOTHING,
        left=_left(last, now.date()),
        why=each.why,
    )


def _left(last: date | None, today: date) -> str:
    if last is None:
        return NOTHING
    days = (last - today).days
    return f"{days} days" if days > 1 else f"{days} day" if days == 1 else "last day" if days == 0 else "too late"


def _moment(time: datetime) -> str:
    return f"{time.astimezone(UTC):%Y-%m-%d %H:%M}"
