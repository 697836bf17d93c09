"""Sets of nodes by name, as people and Slurm write them: node[01-16]. What cannot be one is refused in one line."""

import math
import re
from collections.abc import Iterable

from ..evidence import RunError, node_name
from ..evidence.header import MOST_NODES

_LONGEST = 100_000
_LONGEST_NUMBER = 18
_BRACKETS = re.compile(r"\[([^\[\]]*)\]")
# What stands between sets: a comma, or the operators of ClusterShell; not those within brackets.
_BETWEEN = re.compile(r"[,!&^](?![^\[\]]*\])")
_RANGE = re.compile(r"\s*(-?\d+)-(-?\d+)(?:/(\d+))?\s*")


def node_set(text: str, named: str = "--hosts") -> tuple[str, ...]:
    """The hosts of a node set as ClusterShell reads it. `named` is where it was given, for errors. Raises RunError.

    A host's name is its node's name in the run; what cannot be one is refused: users and ports belong in ssh's own
    configuration. How many it names is counted before any is: a few characters can stand for billions.
    """
    from ClusterShell.NodeSet import NodeSet, NodeSetException

    shown = text if len(text) <= 80 else f"{text[:80]}…"
    _refuse_many(_most_of(text), f"{named} {shown}")
    try:
        found = NodeSet(text)
    except NodeSetException as error:
        raise RunError(f"{named} {shown}: {str(error)[:200]}") from None
    _refuse_many(len(found), f"{named} {shown}")  # groups have names of their own
    hosts = tuple(str(host) for host in found)
    if not hosts:
        raise RunError(f"{named} {shown}: no host in it")
    refuse_odd_names(hosts, f"{named} {shown}")
    return hosts


def refuse_odd_names(names: Iterable[str], told: str) -> None:
    """Raises RunError where a name is no plain host name: it could be read as an option, or as words of a shell, by
    what the user's ssh configuration starts."""
    for name in names:
        if node_name(name) != name:
            raise RunError(f"{told}: {name[:80]!r} is no plain host name (users and ports belong in ~/.ssh/config)")


def _refuse_many(count: float, told: str) -> None:
    if count > MOST_NODES:
        many = f"{count:,}" if count <= 1e15 else "far too many"
        raise RunError(f"{told}: {many} nodes, and a run has at most {MOST_NODES:,}")


def _most_of(text: str) -> float:
    """How many hosts a node set can name, by its ranges alone."""
    if len(text) > _LONGEST:
        return math.inf
    return sum(math.prod(map(_size, _BRACKETS.findall(part))) for part in _BETWEEN.split(text))


def _size(ranges: str) -> float:
    """How many numbers stand in brackets. What is no range counts once: ClusterShell says what is wrong with it."""
    return sum(_length(found) if (found := _RANGE.fullmatch(part)) else 1 for part in ranges.split(","))


def _length(found: re.Match[str]) -> float:
    first, last, step = found.groups()
    if max(map(len, (first, last, step or ""))) > _LONGEST_NUMBER:
        return math.inf
    return max(0, (int(last) - int(first)) // max(1, int(step or 1)) + 1)
