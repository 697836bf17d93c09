"""`hwlottery export`: the formats by name."""

import io
from collections.abc import Callable
from typing import Literal

from msgspec import Struct

from ..evidence import Run
from . import junit, node_lists, prometheus, table_export, ticket, ticket_archive

Format = Literal["csv", "junit", "prometheus", "ticket", "exclude", "hostfile"]


class Wanted(Struct, frozen=True, kw_only=True):
    """What is wanted of a format: findings on these `nodes` alone, `zipped` with what belongs to them (ticket)."""

    nodes: tuple[str, ...] = ()
    zipped: bool = False


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
    """The run in that format. Raises KeyError for a format that is none, NoTicket and NoNodeList where there is
    nothing to give."""
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
    "exclude": _exclude,
    "hostfile": _hostfile,
}
