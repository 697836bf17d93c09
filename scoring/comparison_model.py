"""What a comparison of runs holds: the same object for the page, the terminal and scripts."""

from datetime import datetime
from typing import Literal

import msgspec
from msgspec import Struct

from .comparison_differences import Difference
from .comparison_intervals import ALPHA
from .delivery import Delivery
from .verdict import VerdictWord

FORMAT = 1


class Entrant(Struct, frozen=True, kw_only=True):
    """A run as it takes part: its letter, what it is, its verdict, and what its reader must know first (`marks`)."""

    letter: str
    run_id: str
    provider: str
    cluster: str
    nodes: int
    accelerators: int
    accelerator: str
    started: datetime | None
    price_per_gpu_hour: float | None
    verdict: VerdictWord
    signable: bool
    excluded: tuple[str, ...]
    marks: tuple[str, ...]
    delivery: Delivery | None = None  # by its provider.yaml, where there is one


class Standing(Struct, frozen=True, kw_only=True):
    """A run's figure with its 95 % interval, and as a share of the best that it may be compared with; or why there is
    none."""

    letter: str
    value: float | None = None
    low: float | None = None
    high: float | None = None
    share: float | None = None
    subjects: int = 0
    why_not: str = ""


class Contrast(Struct, frozen=True, kw_only=True):
    """Two runs in one figure. `ratio` is the first over the second, with the interval that holds together with all
    others of the comparison. `better` is the letter of the better one where they are told apart."""

    first: str
    second: str
    ratio: float
    low: float
    high: float
    told_apart: bool
    better: str | None
    may_explain: tuple[str, ...]


class MetricCompared(Struct, frozen=True, kw_only=True):
    """One figure over all runs. `comparable` are letters that may be compared with each other, the best first; `alike`
    those of them that cannot be told apart from each other. `spread` is one standard deviation from run to run, `basis`
    where that is from."""

    key: str
    title: str
    metric: str
    unit: str
    better: Literal["higher", "lower"]
    measured_with: str
    spread: float
    basis: str
    standings: tuple[Standing, ...]
    contrasts: tuple[Contrast, ...]
    comparable: tuple[tuple[str, ...], ...]
    alike: tuple[tuple[str, ...], ...]

    @property
    def compared(self) -> bool:
        """Whether any two runs could be compared."""
        return bool(self.contrasts)


class Place(Struct, frozen=True, kw_only=True):
    """A run's place; `tied` are the runs of which it cannot be told apart by the figure that ranks."""

    place: int
    letter: str
    tied: tuple[str, ...]
    reasons: tuple[str, ...]


class Ranking(Struct, frozen=True, kw_only=True):
    """The runs in order by one figure; `unranked` are those without it, with the reason."""

    by: str
    title: str
    places: tuple[Place, ...]
    unranked: tuple[tuple[str, str], ...]


class Comparison(Struct, frozen=True, kw_only=True):
    """The whole comparison; of `comparisons` intervals all hold together with a confidence of 1 - `alpha`."""

    format: int = FORMAT
    runs: tuple[Entrant, ...]
    differences: tuple[Difference, ...]
    metrics: tuple[MetricCompared, ...]
    ranking: Ranking
    alpha: float = ALPHA
    comparisons: int
    history: int
    notes: tuple[str, ...] = ()

    @property
    def comparable(self) -> bool:
        """Whether any figure of any two runs could be compared."""
        return self.comparisons > 0


def comparison_json(found: Comparison) -> bytes:
    """The comparison for scripts."""
    return msgspec.json.format(msgspec.json.encode(found), indent=1) + b"\n"
