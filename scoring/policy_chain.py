"""Policies that extend another one: the texts stand one after another as YAML documents, and travel so with a run.

name: mine
extends: acceptance         # one that comes with hwlottery, never a file: nothing else is read
leave_out: [burn_in.step]   # checks of it that are not wanted
checks:
  - check: matmul.rate      # a name that it has: these keys instead of its own, layers one by one, null takes away
    layers: {contract: {at_least: 700}, baseline: null}
  - check: mine.kernel      # another name: one more check
    fact: software.kernel
    ...
"""

from typing import Any

from ..evidence.user_files import meant
from .policy_text import PolicyError, plain_documents

OF_EXTENDING = ("extends", "leave_out")


def chained(base: str, text: str) -> str:
    """The text of a policy behind that of the one it extends."""
    return f"{base.rstrip()}\n---\n{text.removeprefix('---').lstrip()}"


def extended_by(text: str, where: str) -> str | None:
    """The name of the policy that a text extends and does not carry; None for a whole one. Raises PolicyError."""
    documents = _documents(text, where) if "extends" in text else []
    name = documents[0].get("extends") if len(documents) == 1 and isinstance(documents[0], dict) else None
    return None if name is None else str(name)


def merged(text: str, where: str) -> Any:
    """The plain data of a text, with what later documents change of earlier ones. Raises PolicyError."""
    documents = _documents(text, where)
    if not documents:
        return None
    whole, *later = documents
    if isinstance(whole, dict) and "extends" in whole:
        raise PolicyError(f"{where}: extends {whole['extends']!s:.80}, whose text does not stand before it")
    if isinstance(whole, dict) and "leave_out" in whole:
        raise PolicyError(f"{where}: leave_out: is for a policy that extends another: name that as extends: NAME")
    for document in later:
        whole = _extended(whole, document, where)
    return whole


def _documents(text: str, where: str) -> list[Any]:
    """Without the empty ones: a comment before a leading --- makes one."""
    return [document for document in plain_documents(text, where) if document is not None]


def _extended(base: Any, document: Any, where: str) -> dict[str, Any]:
    if not isinstance(base, dict) or not isinstance(document, dict) or document.get("extends") != base.get("name"):
        raise PolicyError(f"{where}: each document after the first says that it extends the one before it")
    kept = [check for check in _checks(base, where) if check["check"] not in _left_out(base, document, where)]
    by_name = {check["check"]: check for check in kept}
    for check in _checks(document, where):
        name = check["check"]
        by_name[name] = _changed(by_name[name], check) if name in by_name else check
    return {**base, **{k: v for k, v in document.items() if k not in OF_EXTENDING}, "checks": [*by_name.values()]}


def _left_out(base: dict[str, Any], document: dict[str, Any], where: str) -> list[str]:
    names: Any = document.get("leave_out", [])
    known = [check["check"] for check in _checks(base, where)]
    wrong = [name for name in names if name not in known] if isinstance(names, list) else [names]
    if wrong:
        told = f"leave_out: a list of checks of {base.get('name')}, not {wrong[0]!s:.80}{meant(str(wrong[0]), known)}"
        raise PolicyError(f"{where}: {told} (choices: {', '.join(known)})"[:600])
    return [*names]


def _checks(document: dict[str, Any], where: str) -> list[dict[str, Any]]:
    checks = document.get("checks", [])
    if not isinstance(checks, list) or not all(isinstance(c, dict) and isinstance(c.get("check"), str) for c in checks):
        raise PolicyError(f"{where}: checks: a list of checks, each with its name as check: NAME")
    names = [check["check"] for check in checks]
    doubled = next((name for name in names if names.count(name) > 1), None)
    if doubled is not None:
        raise PolicyError(f"{where}: checks: check {doubled:.80} stands twice")
    return checks


def _changed(check: dict[str, Any], change: dict[str, Any]) -> dict[str, Any]:
    """A check with the keys of another instead of its own; of its layers those that the other names."""
    whole = check | change
    own, new = check.get("layers"), change.get("layers")
    if isinstance(own, dict) and isinstance(new, dict):
        whole["layers"] = {name: layer for name, layer in (own | new).items() if layer is not None}
    return {key: value for key, value in whole.items() if value is not None}
