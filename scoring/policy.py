"""Policies: what is demanded of a cluster, as YAML data and named rules, never expressions that are evaluated."""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ..evidence import Document
from ..evidence.user_files import first_wrong, keys_of, meant
from .policy_chain import OF_EXTENDING, chained, extended_by, merged
from .policy_model import Check, PolicyModel
from .policy_terms import Terms
from .policy_text import PolicyError, plain_documents, text_of

FOLDER = Path(__file__).parent / "policies"


@dataclass(frozen=True, kw_only=True, slots=True)
class Policy:
    """A policy with the text it was read from, behind that of a policy which it extends; it travels with the run."""

    name: str
    sha256: str
    text: str
    signable: bool
    purpose: str
    exclude_at_most: float
    checks: tuple[Check, ...]
    terms: Terms


def policy_names() -> tuple[str, ...]:
    """The names of the policies that come with hwlottery."""
    return tuple(sorted(file.stem for file in FOLDER.glob("*.yaml")))


def load_policy(name_or_path: str | Path) -> Policy:
    """A policy by its name, or from a file. Raises PolicyError."""
    text = str(name_or_path)
    if text in policy_names():
        file = FOLDER / f"{text}.yaml"
    elif "/" in text or text.endswith((".yaml", ".yml")) or Path(text).is_file():
        file = Path(text)
    else:
        near = meant(text, policy_names())
        raise PolicyError(f"unknown policy {text!r}{near} (choices: {', '.join(policy_names())}, or a YAML file)")
    return policy_from_text(_whole(text_of(file), file.name), file.name)


def _whole(text: str, where: str) -> str:
    """The text, behind that of the policy it extends. Only those that come with hwlottery are looked up: a policy may
    be somebody else's, and no file that it names is opened."""
    base = extended_by(text, where)
    if base is None:
        return text
    if base not in policy_names():
        near = meant(base, policy_names())
        raise PolicyError(
            f"{where}: extends: unknown policy {base[:80]!r}{near} (choices: {', '.join(policy_names())})"
        )
    return chained(_whole(text_of(FOLDER / f"{base}.yaml"), base), text)


@cache
def policy_from_text(text: str, where: str) -> Policy:
    """A policy from its text; `where` names its file in errors. Raises PolicyError."""
    try:
        data = merged(text, where)
        model = PolicyModel.model_validate(data)
    except ValidationError as error:
        raise PolicyError(f"{where}: {_first_error(error, data)}") from error
    return Policy(
        name=model.name,
        sha256=hashlib.sha256(text.encode()).hexdigest(),
        text=text,
        signable=model.signable,
        purpose=model.purpose,
        exclude_at_most=model.exclude_at_most,
        checks=model.checks,
        terms=model.terms,
    )


def lineage(policy: Policy) -> tuple[str, ...]:
    """The name of a policy and those of the policies that it extends, its own first."""
    documents = plain_documents(policy.text, policy.name)
    return tuple(str(each["name"]) for each in reversed(documents) if isinstance(each, dict) and "name" in each)


def document_for(choice: str | None, profile: str) -> Document:
    """The policy that a run carries: the one chosen, else the profile's namesake, else acceptance. Raises
    PolicyError."""
    policy = load_policy(choice or (profile if profile in policy_names() else "acceptance"))
    return Document(name=policy.name, sha256=policy.sha256, text=policy.text)


def document_beside(choice: str | None, profile: str, baseline: Document) -> Document:
    """The policy of a run that is held against an earlier one: the one chosen, else the profile's namesake where that
    compares, else the earlier run's own. Raises PolicyError where it compares nothing."""
    found = document_for(choice, profile) if choice is not None or profile == "recheck" else baseline
    policy = policy_from_text(found.text, f"policy {found.name}")
    if not any(check.layers.baseline for check in policy.checks):
        raise PolicyError(f"policy {policy.name} has no baseline layer: give --policy recheck, or one that has")
    return found


def _first_error(error: ValidationError, data: Any) -> str:
    """The first thing wrong, as 'checks.3 (matmul.rate).each: what is wrong (choices: …)'."""
    told = first_wrong(error, data, keys_at)
    place = re.match(r"checks\.(\d+)", told)
    return f"{place[0]}{_named(data, int(place[1]))}{told[place.end() :]}" if place else told


def keys_at(loc: Sequence[int | str]) -> tuple[str, ...]:
    """The keys that are valid at a place in a policy file."""
    return (*keys_of(PolicyModel, loc), *(OF_EXTENDING if not loc else ()))


def _named(data: Any, index: int) -> str:
    """The name of the check that stands there, where it has one: the place alone counts those of an extended policy."""
    check = data["checks"][index]
    name = check.get("check") if isinstance(check, dict) else None
    return f" ({name:.80})" if isinstance(name, str) else ""
