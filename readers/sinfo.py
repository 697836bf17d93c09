"""Slurm's `sinfo --noheader --Node --format="%N %t"`: a line a node and partition.

    node1 idle
    node2 idle*
    node3 alloc

A flag after the state says that a node is not there to be had: * does not answer, ~ is powered off, - is planned for
a job of higher priority, and so on (sinfo(1), NODE STATE CODES). Idle is who has none.
"""

from collections.abc import Iterator


def idle_nodes(text: str) -> tuple[str, ...]:
    """The nodes that are idle, each once, in the order of the text."""
    return tuple(dict.fromkeys(_idle(text)))


def _idle(text: str) -> Iterator[str]:
    for line in text.splitlines():
        name, _, state = line.strip().partition(" ")
        if state.strip() == "idle":
            yield name
