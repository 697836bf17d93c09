"""How far a run is, as a value: whoever shows it decides how."""

from msgspec import Struct


class Progress(Struct, frozen=True, kw_only=True):
    """The state of a run at one moment. `expected_s` is for the whole run; `done_s` the expected time of what is done.

    `round` counts the rounds of the probe under way, from 1; `rounds` is how many its plan has if nothing has to be
    retested, 0 where nobody knows. `ranks` are those of the nodes that are here, `ranks_busy` is 0 between trials;
    `nodes_lost` names who never joined or has left.
    """

    probe: str
    probe_number: int
    probes: int
    doing: str = ""
    round: int = 0
    rounds: int = 0
    ranks: int = 0
    ranks_busy: int = 0
    nodes: int = 0
    nodes_here: int = 0
    nodes_lost: tuple[str, ...] = ()
    done_s: float = 0.0
    expected_s: float = 0.0
