"""All references together: those that come with hwlottery, and those of a user's own file before them."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, TypeVar

from pydantic import Field, model_validator

from ..evidence import Document, Params
from ..evidence.user_files import Strict
from .accelerators import Accelerator
from .entries import Entry, ReferenceKind, ReferenceValue, Source
from .fabrics import Fabric, Network
from .loading import FOLDER, ReferenceFileError, model_from_text

SHIPPED = ("accelerators.yaml", "fabrics.yaml")
_Entry = TypeVar("_Entry", bound=Entry)


class ReferenceFile(Strict):
    """The whole of a file of references: those that come with hwlottery, or a user's."""

    sources: dict[str, Source] = Field(default_factory=dict)
    accelerators: tuple[Accelerator, ...] = ()
    fabrics: tuple[Fabric, ...] = ()

    @model_validator(mode="after")
    def _keys_are_different(self) -> "ReferenceFile":
        keys = [one.key for one in self.accelerators] + [one.key for one in self.fabrics]
        doubled = sorted({key for key in keys if keys.count(key) > 1})
        if doubled:
            raise ValueError(f"key stands twice: {', '.join(doubled)}")
        return self

    @property
    def entries(self) -> tuple[Entry, ...]:
        """All of it, whatever kind."""
        return (*self.accelerators, *self.fabrics)


@dataclass(frozen=True, kw_only=True, slots=True)
class References:
    """Accelerators, fabrics and, entry by entry, the sources of their values; `own` is the user's file, where there was
    one. The name of a source means what it means in its entry's file: two files may call two sources alike."""

    accelerators: tuple[Accelerator, ...]
    fabrics: tuple[Fabric, ...]
    sources: Mapping[tuple[type[Entry], str], Mapping[str, Source]]
    own: Document | None = None
    own_keys: frozenset[str] = frozenset()
    _kinds: dict[tuple[str, int | None, float | None], Accelerator | None] = field(default_factory=dict, compare=False)
    _values: dict[Any, float | None] = field(default_factory=dict, compare=False)

    def accelerator(self, name: str, memory_bytes: int | None, power_limit_w: float | None) -> Accelerator | None:
        """The kind of a device, or None: an unknown one has no reference, never somebody else's.

        Names are compared whole (H20 is not H200); the entry that asks for most is taken, the user's before ours.
        """
        key = (name, memory_bytes, power_limit_w)
        if key not in self._kinds:
            fit = [entry for entry in self.accelerators if entry.is_this(*key)]
            self._kinds[key] = max(fit, key=lambda entry: (entry.key in self.own_keys, entry.closeness), default=None)
        return self._kinds[key]

    def fabric(self, network: Network) -> Fabric | None:
        """The kind of a node's fabric, or None where it is unknown."""
        fit = [entry for entry in self.fabrics if entry.is_this(network)]
        return max(fit, key=lambda entry: (entry.key in self.own_keys, entry.closeness), default=None)

    def source(self, entry: Entry, value: ReferenceValue) -> Source:
        """Where a value of an entry comes from."""
        return self.sources[type(entry), entry.key][value.source]

    def figure(self, kind: Accelerator, metric: str, params: Params, of: ReferenceKind) -> float | None:
        """A value of a kind of accelerator as a number, looked up once for the same params."""
        key = (kind.key, metric, tuple(params.items()), of)
        if key not in self._values:
            found = kind.value(metric, params, of)
            self._values[key] = found.value if found else None
        return self._values[key]


@cache
def shipped() -> References:
    """The references that come with hwlottery. Raises ReferenceFileError."""
    files = [_checked((FOLDER / name).read_text(encoding="utf-8"), name, {}) for name in SHIPPED]
    return References(
        accelerators=tuple(entry for file in files for entry in file.accelerators),
        fabrics=tuple(entry for file in files for entry in file.fabrics),
        sources={(type(entry), entry.key): file.sources for file in files for entry in file.entries},
    )


def with_own(text: str, where: str) -> References:
    """The references with a user's file before them: an entry with the key of one of ours stands instead of it. Its
    values name sources of its own, or of our file of such entries; ours keep their sources, whatever it calls its own.
    Raises ReferenceFileError; `where` names the file in it."""
    base = shipped()
    kinds: tuple[type[Entry], ...] = (Accelerator, Fabric)
    ours = {kind: _sources_of(kind, base) for kind in kinds}
    file = _checked(text, where, ours)
    own = {(type(entry), entry.key): {**ours[type(entry)], **file.sources} for entry in file.entries}
    return References(
        accelerators=_before(file.accelerators, base.accelerators),
        fabrics=_before(file.fabrics, base.fabrics),
        sources={**base.sources, **own},
        own_keys=frozenset(entry.key for entry in file.entries),
        own=Document(name=where[-120:], sha256=hashlib.sha256(text.encode()).hexdigest(), text=text),
    )


def references_of(document: Document | None) -> References:
    """The references that a run was judged by: ours, and the file that it carries. Raises ReferenceFileError."""
    return shipped() if document is None else with_own(document.text, document.name)


def _sources_of(kind: type[Entry], base: References) -> Mapping[str, Source]:
    return next(sources for (of, _), sources in base.sources.items() if of is kind)


def _before(own: Iterable[_Entry], ours: Iterable[_Entry]) -> tuple[_Entry, ...]:
    first = list(own)
    keys = {entry.key for entry in first}
    return (*first, *(entry for entry in ours if entry.key not in keys))


def _checked(text: str, where: str, ours: Mapping[type[Entry], Mapping[str, Source]]) -> ReferenceFile:
    """A file, each of whose values names a source of it, or of `ours` by the kind of its entry."""
    file = model_from_text(text, where, ReferenceFile)
    for entry in file.entries:
        known = {**ours.get(type(entry), {}), **file.sources}
        lacking = next((value.source for value in entry.values if value.source not in known), None)
        if lacking is not None:
            choices = ", ".join(sorted(known)) or "none: list it under sources"
            raise ReferenceFileError(f"{where}: {entry.key}: source {lacking!r} is not listed (choices: {choices})")
    return file
