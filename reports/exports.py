"""`hwlottery export`: the formats by name."""

import io
from collections.abc import Callable
from datetime import date
from typing import Literal

from msgspec import Struct

from ..evidence import Run
from ..scoring.provider_record import ProviderRecord
from . import claim, junit, node_lists, prometheus, provider_template, table_export, ticket, ticket_archive

Format = Literal["csv", "junit", "prometheus", "ticket", "claim", "exclude", "hostfile", "provider-template"]


class Wanted(Struct, frozen=True, kw_only=True):
    """What is wanted of a format: findings on these `nodes` alone, `zipped` with what belongs to them (ticket); as of
    `today`, by the provider's `record` (claim)."""

    nodes: tuple[str, ...] = ()
    zipped: bool = False
    today: date = date.max
    record: ProviderRecord | None = None


class Exported(Struct, frozen=True, kw_only=True):
    """A run in another form, and what whoever uses it should know."""

    content: bytes
    notes: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The content of a format that is text."""
        return self.content.decode()


_DEFAULT = Wanted()


def exported(run: Run, form: Format, wanted: Wanted = _DEFAULT) -> Exported:
    """The run in that format. Raises KeyError for a format that is none, and NoTicket, NoClaim or NoNodeList where
    there is nothing to give."""
    return _FORMATS[form](run, wanted)


def _text(text: str, notes: tuple[str, ...] = ()) -> Exported:
    return Exported(content=text.encode(), notes=notes)


def _csv(run: Run, _: Wanted) -> Exported:
    out = io.StringIO()
    table_export.write(run, out)
    return _text(out.getvalue())


def _junit(run: Run, _: Wanted) -> Exported:
    from ..scoring import score_run

    return _text(junit.render(score_run(run)))


def _prometheus(run: Run, _: Wanted) -> Exported:
    from ..scoring import score_run

    return _text(prometheus.render(run, score_run(run)))


def _ticket(run: Run, wanted: Wanted) -> Exported:
    from ..scoring import score_run

    found = ticket.ticket(run, score_run(run), wanted.nodes)
    return Exported(content=ticket_archive.as_zip(run, found)) if wanted.zipped else _text(ticket.as_markdown(found))


def _claim(run: Run, wanted: Wanted) -> Exported:
    from ..scoring import score_run

    return _text(claim.as_markdown(claim.claim(run, score_run(run), wanted.record, wanted.today)))


def _provider_template(run: Run, _: Wanted) -> Exported:
    return _text(provider_template.render(run))


def _exclude(run: Run, _: Wanted) -> Exported:
    from ..scoring import score_run

    found = node_lists.exclude(run, score_run(run))
    return _text(found.text, found.notes)


def _hostfile(run: Run, _: Wanted) -> Exported:
    from ..scoring import score_run

    found = node_lists.hostfile(run, score_run(run))
    return _text(found.text, found.notes)


_FORMATS: dict[Format, Callable[[Run, Wanted], Exported]] = {
    "csv": _csv,
    "junit": _junit,
    "prometheus": _prometheus,
    "ticket": _ticket,
    "claim": _claim,
    "exclude": _exclude,
    "hostfile": _hostfile,
    "provider-template": _provider_template,
}
