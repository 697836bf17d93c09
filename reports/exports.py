"""`hwlottery export`: the formats by name."""

import io
from collections.abc import Callable
from typing import Literal

from ..evidence import Run
from . import junit, table_export

Format = Literal["csv", "junit"]


def exported(run: Run, form: Format) -> str:
    """The run in that format, as text. Raises KeyError for a format that is none."""
    return _FORMATS[form](run)


def _csv(run: Run) -> str:
    out = io.StringIO()
    table_export.write(run, out)
    return out.getvalue()


def _junit(run: Run) -> str:
    from ..scoring import score_run

    return junit.render(score_run(run))


_FORMATS: dict[Format, Callable[[Run], str]] = {"csv": _csv, "junit": _junit}
