"""Machines that fail again and again, under whatever names."""

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from .past_runs import PastRun, Seen

FAILS_TO_BE_A_LEMON = 2  # failing in one run may be a bad day, or what was mended since


class Lemon(Struct, frozen=True, kw_only=True):
    """A machine that fails again and again, under whatever names: the runs in which it would have had to be taken out.

    `here` is the name it stands behind now, None where it is gone; `back` says that it was gone, or had another name,
    after it had failed.
    """

    machine: str
    names: tuple[str, ...]
    here: str | None
    failed_in: tuple[str, ...]
    checks: tuple[str, ...]
    seen_in: int
    back: bool


Sighting = tuple[PastRun, Seen]  # a machine in one run


def sightings(runs: Sequence[PastRun]) -> dict[str, list[Sighting]]:
    """By machine, in the order of the runs."""
    found: dict[str, list[Sighting]] = {}
    for run in runs:
        for seen in run.nodes:
            found.setdefault(seen.machine, []).append((run, seen))
    return found


def lemons_of(
    runs: Sequence[PastRun], machines: Mapping[str, Sequence[Sighting]], here: Mapping[str, str]
) -> Iterator[Lemon]:
    """Machines that failed in two runs or more, and those that came back after they had failed."""
    names = {machine: name for name, machine in here.items()}
    for machine, found in sorted(machines.items()):
        failed = [(run, seen) for run, seen in found if seen.failed]
        back = bool(failed) and _came_back(machine, failed[0], found, runs)
        if len(failed) >= FAILS_TO_BE_A_LEMON or back:
            yield Lemon(
                machine=machine,
                names=tuple(dict.fromkeys(seen.name for _, seen in found)),
                here=names.get(machine),
                failed_in=tuple(run.run_id for run, _ in failed),
                checks=tuple(dict.fromkeys(check for _, seen in failed for check in seen.failed)),
                seen_in=len(found),
                back=back,
            )


def _came_back(
    machine: str, failed: Sighting, found: Sequence[Sighting], runs: Sequence[PastRun]
) -> bool:  # fmt: skip
    """Whether a machine is seen again under another name, or after another machine had taken its name."""
    first, as_then = failed
    later = [(run, seen) for run, seen in found if run.started > first.started]
    if any(seen.name != as_then.name for _, seen in later):
        return True
    replaced = [
        run.started
        for run in runs
        for seen in run.nodes
        if run.started > first.started and seen.name == as_then.name and seen.machine != machine
    ]
    return bool(replaced) and any(run.started > min(replaced) for run, _ in later)
