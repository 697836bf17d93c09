"""provider.yaml: what no run can measure of a provider. Dates, tickets, replacements, promises; beside a run, optional.

provider: Provider A
promised: {date: 2027-01-15, nodes: 16}
delivered:
  - {date: 2027-01-20, nodes: 16}
tickets:
  - {id: "4711", node: n17, opened: 2027-01-21T09:00Z, answered: 2027-01-21T15:30Z, solved: 2027-01-25T12:00Z,
     blamed: buyer, outage: true, clause: "4.2", what: GPU 3 fell off the bus}
sla: {answer_hours: 4, solve_hours: 72, claim_window_days: 30, clause: "4.2"}
clauses: {"4.2": A node that is out for more than four hours is not charged.}
"""

from datetime import UTC, date, datetime
from pathlib import Path
from typing import Annotated, Literal, get_args

from pydantic import AwareDatetime, Field, model_validator

from ..evidence import HwlotteryError
from ..evidence.user_files import Number, Strict, Whole
from ..references.loading import ReferenceFileError, model_from_text, text_of

FILE_NAME = "provider.yaml"
Text = Annotated[str, Field(max_length=2000)]
Word = Annotated[str, Field(min_length=1, max_length=128, pattern=r"^[^\x00-\x1f\x7f]+$")]
Hours = Annotated[Number, Field(gt=0, le=87_600)]
Day = Annotated[date, Field(ge=date(2000, 1, 1), le=date(2200, 1, 1))]
Moment = Annotated[AwareDatetime, Field(ge=datetime(2000, 1, 1, tzinfo=UTC), le=datetime(2200, 1, 1, tzinfo=UTC))]
Count = Annotated[Whole, Field(ge=1, le=1_000_000)]
Blamed = Literal["provider", "buyer", "third_party", "nobody", "unclear"]
BLAMED: tuple[Blamed, ...] = get_args(Blamed)


class ProviderFileError(HwlotteryError):
    """A provider.yaml cannot be used; the message is one line naming file and key."""


class Nodes(Strict):
    """So many nodes on a day: promised in all, or delivered on that day."""

    date: Day
    nodes: Count


class Ticket(Strict):
    """A ticket to the provider. `blamed`: whom the answer blamed. `outage`: its nodes could not be used from `opened`
    to `solved`. `clause`: by which they are claimed, where another than the SLA's."""

    id: Word
    opened: Moment
    answered: Moment | None = None
    solved: Moment | None = None
    blamed: Blamed | None = None
    node: Word | None = None
    nodes: tuple[Word, ...] = ()
    outage: bool = False
    clause: Word | None = None
    what: Text = ""

    @model_validator(mode="after")
    def _in_order(self) -> "Ticket":
        for name, moment in (("answered", self.answered), ("solved", self.solved)):
            if moment is not None and moment < self.opened:
                raise ValueError(f"{name} before it was opened")
        if self.outage and not self.concerns:
            raise ValueError("an outage is of a node: give node or nodes")
        return self

    @property
    def concerns(self) -> tuple[str, ...]:
        """The nodes it is about, each once."""
        return tuple(dict.fromkeys((*([self.node] if self.node else []), *self.nodes)))


class Replacement(Strict):
    """A node that was to be replaced: when that was asked for, and when another one came."""

    node: Word
    asked: Moment
    replaced: Moment | None = None
    serial_out: Word | None = None
    serial_in: Word | None = None

    @model_validator(mode="after")
    def _in_order(self) -> "Replacement":
        if self.replaced is not None and self.replaced < self.asked:
            raise ValueError("replaced before it was asked for")
        return self


class Incident(Strict):
    """Something that happened on a day: a checkpoint lost, a change of the stack that the provider demanded."""

    date: Day
    what: Text


class Sla(Strict):
    """What was promised of the service. `claim_window_days`: how long after its end an outage may be claimed."""

    clause: Word | None = None
    availability: Annotated[Number, Field(gt=0, le=1)] | None = None
    answer_hours: Hours | None = None
    solve_hours: Hours | None = None
    replacement_hours: Hours | None = None
    claim_window_days: Annotated[Whole, Field(ge=1, le=3650)] | None = None


class ProviderRecord(Strict):
    """The whole of a provider.yaml. `price_per_gpu_hour` is in `currency`, and stands in no export."""

    provider: Text = ""
    cluster: Text = ""
    currency: Annotated[str, Field(pattern=r"^[A-Z]{3}$")] = "USD"
    price_per_gpu_hour: Annotated[Number, Field(gt=0, le=1e6)] | None = None
    promised: Nodes | None = None
    delivered: tuple[Nodes, ...] = ()
    tickets: tuple[Ticket, ...] = ()
    replaced: tuple[Replacement, ...] = ()
    checkpoints_lost: tuple[Incident, ...] = ()
    stack_changes: tuple[Incident, ...] = ()
    sla: Sla = Sla()
    clauses: dict[Word, Text] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _clauses_are_there(self) -> "ProviderRecord":
        named = [name for name in (self.sla.clause, *(ticket.clause for ticket in self.tickets)) if name]
        unknown = next((name for name in named if self.clauses and name not in self.clauses), None)
        if unknown is not None:
            raise ValueError(f"clause {unknown!r} has no text (choices: {', '.join(self.clauses)})")
        ids = [ticket.id for ticket in self.tickets]
        doubled = next((name for name in ids if ids.count(name) > 1), None)
        if doubled is not None:
            raise ValueError(f"ticket {doubled!r} stands twice")
        return self

    def told_until(self, day: date) -> date:
        """The last day that the record speaks of, `day` at the least."""
        days = [each.date for each in self.delivered]
        days += [each.date for some in (self.checkpoints_lost, self.stack_changes) for each in some]
        moments = [m for each in self.tickets for m in (each.opened, each.answered, each.solved)]
        moments += [m for each in self.replaced for m in (each.asked, each.replaced)]
        return max([day, *days, *(moment.astimezone(UTC).date() for moment in moments if moment)])


def provider_of(run: Path, given: Path | None) -> ProviderRecord | None:
    """The record that was given, else the one beside a run, else None. Raises ProviderFileError.

    A link of the user's own is followed; one in a run directory, which may be another's, is not.
    """
    file = given or run / FILE_NAME
    if given is None and file.is_symlink():
        raise ProviderFileError(f"{file}: a link: not followed")
    if given is None and not file.exists():
        return None
    try:
        return record_from_text(text_of(file), file.name)
    except ReferenceFileError as error:
        raise ProviderFileError(str(error)) from error


def record_from_text(text: str, where: str) -> ProviderRecord:
    """A record from its text; `where` names the file in errors. Raises ProviderFileError."""
    try:
        return model_from_text(text, where, ProviderRecord)
    except ReferenceFileError as error:
        raise ProviderFileError(str(error)) from error
