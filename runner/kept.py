"""What an earlier run left behind, by its own records: a path alone proves nothing."""

import msgspec

from ..evidence import LeftCheckpoint, Run

LEFT = "retention.left"


def left_by(run: Run) -> LeftCheckpoint | None:
    """The checkpoint that a run left, or found whole; None where it left none, or its record cannot be read."""
    told = run.fact("cluster", LEFT)
    if not isinstance(told, str):
        return None
    try:
        return msgspec.json.decode(told, type=LeftCheckpoint)
    except msgspec.MsgspecError:
        return None
