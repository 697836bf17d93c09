"""Facts of a run by subject and key, and what follows from them: access tiers and kinds of accelerators."""

import math
from collections.abc import Iterable

from ..evidence import TIERS, Promised, Run, Tier
from ..evidence.records import Scalar
from ..references import Accelerator, references_of

EVERY_TIER = frozenset(TIERS)
UNREADABLE = "unreadable."


class Facts:
    """The last value of each fact. A fact that could not be read stands as unreadable.KEY with the reason."""

    def __init__(self, run: Run) -> None:
        self._on_node: dict[str, dict[str, dict[str, Scalar]]] = {}
        self._on: dict[str, dict[str, Scalar]] = {}
        self._by_key: dict[tuple[str, str], Scalar] = {(fact.subject, fact.key): fact.value for fact in run.facts}
        self._of_parts: dict[tuple[str, str], dict[str, Scalar]] | None = None
        self._tiers = _recorded_tiers(run, self)
        self._kinds: dict[str, Accelerator | None] = {}
        self.references = references_of(run.header.references)

    def get(self, subject: str, key: str) -> Scalar | None:
        """The value, or None where it was not seen."""
        return self._by_key.get((subject, key))

    def of_parts(self, node: str, key: str) -> dict[str, Scalar]:
        """The values of a fact on the parts of a node (its accelerators, NICs, ...), by their subject."""
        if self._of_parts is None:
            self._of_parts = {}
            for (subject, name), value in self._by_key.items():
                owner, part, _ = subject.partition("/")
                if part:
                    self._of_parts.setdefault((owner, name), {})[subject] = value
        return self._of_parts.get((node, key), {})

    def on(self, subject: str) -> dict[str, Scalar]:
        """The facts of one subject by key."""
        if not self._on:
            for (name, key), value in self._by_key.items():
                self._on.setdefault(name, {})[key] = value
        return self._on.get(subject, {})

    def why_not(self, subject: str, key: str) -> str | None:
        """Why a fact could not be read, or None where nobody said."""
        why = self.get(subject, UNREADABLE + key)
        return None if why is None else str(why)

    def number(self, subject: str, key: str) -> float | None:
        """The value as a number, or None where it is none."""
        value = self.get(subject, key)
        return None if isinstance(value, bool) else finite(value)

    def tiers(self, node: str) -> frozenset[Tier]:
        """Every access tier recorded of a node: found, found by an earlier segment, or declared.

        What each of them requires is required; a declared tier can add to that and take nothing away. Where none was
        recorded, all of them: the most is required.
        """
        return self._tiers.get(node, EVERY_TIER)

    def knows_tier(self, node: str) -> bool:
        """Whether any access tier of a node was recorded."""
        return node in self._tiers

    def accelerator(self, subject: str) -> Accelerator | None:
        """The kind of an accelerator among the references, or None where it is unknown."""
        if subject not in self._kinds:
            self._kinds[subject] = self._kind(subject)
        return self._kinds[subject]

    def _kind(self, subject: str) -> Accelerator | None:
        name, memory = self.get(subject, "accelerator.name"), self.number(subject, "accelerator.memory")
        power = self.number(subject, "accelerator.power_limit")
        if not isinstance(name, str):
            return None
        return self.references.accelerator(name, None if memory is None else int(memory), power)

    def of_node(self, node: str) -> dict[str, dict[str, Scalar]]:
        """The facts of what is on a node (its NICs among others), by subject and key."""
        if not self._on_node:
            for (subject, key), value in self._by_key.items():
                on, slash, _ = subject.partition("/")
                if slash:
                    self._on_node.setdefault(on, {}).setdefault(subject, {})[key] = value
        return self._on_node.get(node, {})

    def accelerator_of_node(self, node: Promised) -> Accelerator | None:
        """The kind that all accelerators of a node are of, or None where they differ or one is unknown."""
        return the_one_kind(self.accelerator(f"{node.node}/{rank}") for rank in node.ranks)


def finite(value: Scalar | None) -> float | None:
    """A finite number, or None for everything else; an integer may be too large for one."""
    try:
        number = float(value) if isinstance(value, int | float) else math.nan
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def the_one_kind(kinds: Iterable[Accelerator | None]) -> Accelerator | None:
    """The kind that all are of, or None where they differ or one is unknown."""
    by_key = {kind.key if kind else None: kind for kind in kinds}
    return next(iter(by_key.values())) if len(by_key) == 1 else None


def _recorded_tiers(run: Run, facts: Facts) -> dict[str, frozenset[Tier]]:
    recorded: dict[str, frozenset[Tier]] = {}
    for promised in run.header.promised:
        found = {segment.tiers[promised.node] for segment in run.header.segments if promised.node in segment.tiers}
        seen = facts.get(promised.node, "node.tier")
        found |= {tier for tier in TIERS if tier == seen}
        if found and run.header.declared_tier:
            found.add(run.header.declared_tier)
        if found:
            recorded[promised.node] = frozenset(found)
    return recorded
