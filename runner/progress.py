"""How far a run is, as a value: whoever shows it decides how."""

from msgspec import Struct


class Progress(Struct, frozen=True, kw_only=True):
    """The state of a run at one moment. `expected_s` is for the whole run; `done_s` the expected time of what is done.

    `ranks_busy` is 0 between trials; `nodes_lost` names who has left; `note` is the last thing worth telling.
    """

    probe: str
    probe_number: int
    probes: int
    doing: str = ""
    ranks_busy: int = 0
    done_s: float = 0.0
    expected_s: float = 0.0
    nodes_lost: tuple[str, ...] = ()
    note: str = ""
