"""What a run would do, and for how long, before it does it: for --dry-run and for the time left."""

from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from ..cluster import Cluster, Finished, Round, Trial
from ..probes.profiles import Profile
from ..probes.protocol import Probe

ALWAYS = "inventory"


class ProbePreview(Struct, frozen=True, kw_only=True):
    """One probe's part: rounds and trials, and seconds with all ranks of a round at once. None where it is skipped."""

    probe: str
    rounds: int = 0
    trials: int = 0
    expected_s: float = 0.0
    skipped: bool = False


class Preview(Struct, frozen=True, kw_only=True):
    """A run's plan. `start_s` is for starting ranks; money in USD where a price is known."""

    profile: str
    device: str
    nodes: int
    ranks: int
    probes: tuple[ProbePreview, ...]
    start_s: float
    price_per_gpu_hour: float | None = None

    @property
    def expected_s(self) -> float:
        """Expected seconds from start to report."""
        return self.start_s + sum(probe.expected_s for probe in self.probes)

    @property
    def node_hours(self) -> float:
        """Node-hours that the run takes."""
        return self.nodes * self.expected_s / 3600

    @property
    def usd(self) -> float | None:
        """What the rental of the accelerators costs meanwhile; None without a price or without accelerators."""
        if self.price_per_gpu_hour is None or self.device == "cpu":
            return None
        return self.ranks * self.expected_s / 3600 * self.price_per_gpu_hour


def preview(
    probes: tuple[Probe, ...], profile: Profile, cluster: Cluster, only: tuple[str, ...], price: float | None
) -> Preview:
    """Walk through each probe's plan without running it, as if every trial finished and nothing had to be retested."""
    return Preview(
        profile=profile.name,
        device=cluster.device,
        nodes=len(cluster.nodes),
        ranks=len(cluster.ranks),
        probes=tuple(_of_probe(probe, profile, cluster, only) for probe in probes),
        start_s=10.0,
        price_per_gpu_hour=price,
    )


def wanted(probe: str, only: tuple[str, ...]) -> bool:
    """Whether --only leaves a probe in. Inventory always stays: plans, tiers and uniformity need its facts."""
    return not only or probe in only or probe == ALWAYS


def _of_probe(probe: Probe, profile: Profile, cluster: Cluster, only: tuple[str, ...]) -> ProbePreview:
    settings = profile.settings(probe.name, cluster.device)
    if settings is None or not wanted(probe.name, only):
        return ProbePreview(probe=probe.name, skipped=True)
    rounds = [new for trials in _rounds(probe, cluster, settings) if (new := _not_taken_over(trials, cluster))]
    return ProbePreview(
        probe=probe.name,
        rounds=len(rounds),
        trials=sum(len(trials) for trials in rounds),
        expected_s=sum(max((trial.expected_s for trial in trials), default=0.0) for trials in rounds),
    )


def _not_taken_over(trials: Round, cluster: Cluster) -> Round:
    """Without what an accepted node brought alone: it stands in the accepted run."""
    accepted = cluster.joining.accepted if cluster.joining else frozenset()
    return [trial for trial in trials if {rank.node for rank in trial.ranks} - accepted or _together(trial)]


def _together(trial: Trial) -> bool:
    return len({rank.node for rank in trial.ranks}) > 1


def _rounds(probe: Probe, cluster: Cluster, settings: Any) -> Iterator[Round]:
    plan = probe.plan(cluster, settings, 0)
    try:
        trials = next(plan)
        while True:
            yield trials
            trials = plan.send([Finished(readings=()) for _ in trials])
    except StopIteration:
        return
