"""A ticket as a zip: its text, the measurements that it speaks of, and the ends of the logs. Same run, same bytes."""

import io
import re
import zipfile
from collections.abc import Iterator

import msgspec

from ..evidence import Measurement, NotMeasured, Params, Run
from . import table_export
from .ticket import Ticket, as_markdown, logs_of

_DATE = (1980, 1, 1, 0, 0, 0)  # the first that a zip can say: the time of packing tells nothing


def as_zip(run: Run, found: Ticket) -> bytes:
    """The bytes of ticket.zip: ticket.md, measurements.csv (peers included), logs/."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in _members(run, found):
            member = zipfile.ZipInfo(name, _DATE)
            member.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(member, text)
    return out.getvalue()


def _members(run: Run, found: Ticket) -> Iterator[tuple[str, str]]:
    yield "ticket.md", as_markdown(found)
    table = io.StringIO()
    table_export.write(_relevant(run, found), table)
    yield "measurements.csv", table.getvalue()
    logs = {log.name: log.text for item in found.items for log in logs_of(run, item.finding)}
    for place, (name, text) in enumerate(sorted(logs.items())):
        plain = re.sub(r"[^A-Za-z0-9._-]", "-", name.removeprefix("logs/"))
        yield f"logs/{place:03d}-{plain}"[:200], text + "\n"


def _relevant(run: Run, found: Ticket) -> Run:
    """The run with the values alone that the findings rest on, and those of the peers they were held against."""
    wanted = {_key(item.finding.metric, item.finding.params) for item in found.items if item.finding.metric}

    def ours(record: Measurement | NotMeasured) -> bool:
        return _key(record.metric, record.params) in wanted

    return msgspec.structs.replace(
        run,
        measurements=[record for record in run.measurements if ours(record)],
        not_measured=[record for record in run.not_measured if ours(record)],
    )


def _key(metric: str | None, params: Params) -> tuple[str | None, bytes]:
    return metric, msgspec.json.encode(params, order="sorted")
