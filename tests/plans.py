"""Plans driven without a cluster: each trial is answered by a function, as the runner hands back outcomes."""

from collections.abc import Callable, Mapping
from typing import Any

from msgspec.structs import replace

from hwlottery.cluster import Cluster, Finished, Node, Outcome, Rank, Trial
from hwlottery.evidence import Device, reading
from hwlottery.evidence.records import Scalar
from hwlottery.probes import Probe

Answer = Callable[[Trial], Outcome]


def cluster_of(
    nodes: int, ranks: int = 2, device: Device = "cpu", facts: Mapping[tuple[str, str], Scalar] | None = None
) -> Cluster:
    """Nodes n00, n01 and so on, with so many accelerators or slots each."""
    names = [f"n{index:02d}" for index in range(nodes)]
    word = "gpu" if device == "cuda" else "slot"
    return Cluster(
        nodes=tuple(
            Node(
                name=name,
                scratch="/scratch",
                ranks=tuple(Rank(subject=f"{name}/{word}{i}", node=name, index=i, device=device) for i in range(ranks)),
            )
            for name in names
        ),
        device=device,
        facts=facts or {},
    )


def driven(probe: Probe, cluster: Cluster, settings: Any, answer: Answer) -> list[list[Trial]]:
    """The rounds of the plan. Each outcome gets an id of its trial's first subject and attempt."""
    plan = probe.plan(cluster, settings, 1)
    rounds: list[list[Trial]] = []
    outcomes: list[Outcome] | None = None
    while True:
        try:
            rounds.append(next(plan) if outcomes is None else plan.send(outcomes))
        except StopIteration:
            return rounds
        outcomes = [replace(answer(trial), trial=f"{trial.fills[0].subject}#{trial.attempt}") for trial in rounds[-1]]


def at_speed(trial: Trial, gb_per_s: float) -> Outcome:
    """An outcome in which each bandwidth that the trial announced is near this one, a little faster each attempt."""
    wobble = 1 + 0.01 * (trial.attempt - 1)
    samples = [gb_per_s * wobble * (1 + 0.002 * step) for step in range(5)]
    bandwidths = [fill for fill in trial.fills if "busbw" in fill.metric]
    return Finished(readings=tuple(reading(f.metric, f.subject, samples, **f.params) for f in bandwidths))


def nothing(_: Trial) -> Outcome:
    """A trial that ends well and brings nothing."""
    return Finished(readings=())
