"""Profiles: what a run measures and for how long, in YAML (probes/profiles/, or a user's own file).

name: smoke
summary: one sentence
slots: 2          # CPU ranks a node where there is no accelerator
probes:
  matmul:
    cpu: {...}    # the settings of the probe's dataclass
    cuda: {...}   # null, or left out: skipped by the profile on this device
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from ..evidence import Device, HwlotteryError
from ..evidence.plain_yaml import UnsafeYaml, plain_documents, plain_text
from ..evidence.user_files import first_wrong, meant, unknown
from . import PROBES

_SHIPPED = Path(__file__).parent / "profiles"
DEVICES = ("cpu", "cuda")


class ProfileError(HwlotteryError):
    """A profile cannot be used. One line that names the file, the key and the valid choices."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Profile:
    """A profile in force. `text` is its whole YAML, which travels with the run; `sha256` is that of the text."""

    name: str
    summary: str
    slots: int
    text: str
    chosen: Mapping[tuple[str, Device], Any] = field(repr=False)  # by probe and device, instances of probe.settings

    @property
    def sha256(self) -> str:
        """SHA-256 of the text, in hexadecimal."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    def settings(self, probe: str, device: Device) -> Any | None:
        """The probe's settings on that device, or None where the profile skips it."""
        return self.chosen.get((probe, device))


class _Document(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field(pattern=r"^[a-z][a-z0-9_-]{0,63}$")
    summary: str = Field(min_length=1, max_length=300)
    slots: int = Field(ge=1, le=64)
    probes: dict[str, dict[Device, Any] | None] = Field(min_length=1)


def profile_names() -> tuple[str, ...]:
    """The shipped profiles."""
    return tuple(sorted(file.stem for file in _SHIPPED.glob("*.yaml")))


def load_profile(name_or_path: str) -> Profile:
    """A shipped profile by name, or a user's own by path. Raises ProfileError."""
    if name_or_path in profile_names():
        file = _SHIPPED / f"{name_or_path}.yaml"
    elif "/" in name_or_path or name_or_path.endswith((".yaml", ".yml")):
        file = Path(name_or_path)
    else:
        near = meant(name_or_path, profile_names())
        raise ProfileError(f"unknown profile {name_or_path!r}{near}: choose {_listed(profile_names())}, or a YAML file")
    return profile_from_text(_text_of(file), str(file))


def profile_from_text(text: str, where: str) -> Profile:
    """A profile from its YAML text; `where` names it in errors. Raises ProfileError."""
    data = _mapping(text, where)
    try:
        document = _Document.model_validate(data)
    except ValidationError as error:
        raise ProfileError(f"{where}: {first_wrong(error, data, _keys_of_document)}") from None
    known = {probe.name: probe.settings for probe in PROBES}
    chosen: dict[tuple[str, Device], Any] = {}
    for probe, by_device in document.probes.items():
        if probe not in known:
            raise ProfileError(f"{where}: probes.{probe}: {unknown('probe', probe, sorted(known))}")
        for device, values in (by_device or {}).items():
            if values is not None:
                chosen[probe, device] = _settings(known[probe], values, f"{where}: probes.{probe}.{device}")
    return Profile(name=document.name, summary=document.summary, slots=document.slots, text=text, chosen=chosen)


def _settings(kind: type, values: Any, where: str) -> Any:
    try:
        return TypeAdapter(kind).validate_python(values)
    except ValidationError as error:
        keys = tuple(field.name for field in fields(kind))
        told = first_wrong(error, values, lambda _: keys)
        whole = told.removeprefix("the file")
        raise ProfileError(f"{where}.{told}" if whole == told else f"{where}{whole}") from None


def _text_of(file: Path) -> str:
    try:
        return plain_text(file)
    except UnsafeYaml as error:
        raise ProfileError(f"{file}: {error}") from error


def _mapping(text: str, where: str) -> dict[str, Any]:
    try:
        documents = plain_documents(text)
    except UnsafeYaml as error:
        raise ProfileError(f"{where}: {error}") from error
    if len(documents) != 1 or not isinstance(documents[0], dict):
        raise ProfileError(f"{where}: a profile is one mapping with the keys {_listed(_Document.model_fields)}")
    return documents[0]


def _keys_of_document(loc: Sequence[int | str]) -> tuple[str, ...]:
    return DEVICES if "probes" in loc else tuple(_Document.model_fields)


def _listed(names: Any) -> str:
    return ", ".join(sorted(names))
