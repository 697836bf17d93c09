"""The runs of a folder, read one after the other: what history keeps of each is all that stays."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..scoring.history import Skipped
    from ..scoring.past_runs import PastRun

MOST_RUNS = 5000


def past_runs_in(folder: Path) -> "tuple[list[PastRun], tuple[Skipped, ...]]":
    """The runs in a folder, and what lies there and is none."""
    skipped: list[Skipped] = []
    past = [run for place in _places(folder) if (run := _read(place, skipped)) is not None]
    return past, tuple(skipped)


def _places(folder: Path) -> Iterator[Path]:
    """The run directories in a folder, in order; links are not followed."""
    found = sorted(entry for entry in folder.iterdir() if entry.is_dir() and not entry.is_symlink())
    yield from found[:MOST_RUNS]


def _read(place: Path, skipped: "list[Skipped]") -> "PastRun | None":
    """What history needs of a run; None of what is none, which is named where it looks like one."""
    from ..evidence import read_run
    from ..scoring import score_run
    from ..scoring.history import Skipped
    from ..scoring.past_runs import past_run

    try:
        run = read_run(place)
        found = past_run(run, score_run(run))
    except Exception as error:  # noqa: BLE001  # one odd directory among many must not hide what the others say
        skipped.append(Skipped(path=place.name, why=" ".join(str(error).split())[:300] or type(error).__name__))
        return None
    if found is None:
        skipped.append(Skipped(path=place.name, why="never begun, or simulated"))
    return found
