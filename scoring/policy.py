"""Policies: what is demanded of a cluster, as YAML data and named rules, never expressions that are evaluated."""

import hashlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from pydantic import ValidationError

from ..evidence import Document
from .policy_model import Check, PolicyModel, keys_at
from .policy_text import PolicyError, plain_data

FOLDER = Path(__file__).parent / "policies"


@dataclass(frozen=True, kw_only=True, slots=True)
class Policy:
    """A policy with the text it was read from; the text travels with the run."""

    name: str
    sha256: str
    text: str
    signable: bool
    purpose: str
    exclude_at_most: float
    checks: tuple[Check, ...]


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
        raise PolicyError(f"unknown policy {text!r} (choices: {', '.join(policy_names())}, or a YAML file)")
    try:
        return policy_from_text(file.read_text(encoding="utf-8"), file.name)
    except (OSError, UnicodeDecodeError) as error:
        raise PolicyError(f"{file}: cannot be read: {getattr(error, 'strerror', None) or error}") from error


@cache
def policy_from_text(text: str, where: str) -> Policy:
    """A policy from its text; `where` names its file in errors. Raises PolicyError."""
    try:
        model = PolicyModel.model_validate(plain_data(text, where))
    except ValidationError as error:
        raise PolicyError(f"{where}: {_first_error(error)}") from error
    return Policy(
        name=model.name,
        sha256=hashlib.sha256(text.encode()).hexdigest(),
        text=text,
        signable=model.signable,
        purpose=model.purpose,
        exclude_at_most=model.exclude_at_most,
        checks=model.checks,
    )


def document_for(choice: str | None, profile: str) -> Document:
    """The policy that a run carries: the one chosen, else the profile's namesake, else acceptance. Raises
    PolicyError."""
    policy = load_policy(choice or (profile if profile in policy_names() else "acceptance"))
    return Document(name=policy.name, sha256=policy.sha256, text=policy.text)


def _first_error(error: ValidationError) -> str:
    """The first thing wrong, as 'checks.3.each: what is wrong (choices: …)'; a misspelt key before the key it leaves
    missing."""
    wrong = error.errors(include_url=False)
    telling = ("extra_forbidden", "value_error")
    first = next((entry for kind in telling for entry in wrong if entry["type"] == kind), wrong[0])
    # Of a value that may be several things, pydantic names each thing tried: that is none of the file's keys.
    loc = tuple(part for part in first["loc"] if isinstance(part, int) or str(part).isidentifier() or "." in str(part))
    place = ".".join(str(part) for part in loc) or "the file"
    message = " ".join(str(first["msg"]).split()).removeprefix("Value error, ")
    if first["type"] == "extra_forbidden":
        message = f"unknown key (choices: {', '.join(keys_at(loc[:-1]))})"
    return f"{place}: {message}"[:600]
