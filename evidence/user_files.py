"""Files that people write: models with no room for an unknown key, and what is wrong in a file as one plain line.

checks.3.each: should be 'cluster' or 'node', not 'nodes', did you mean node?

The key as it stands in the file, what is allowed there, and of a misspelt name the one that was meant; no name of a
class and no word of a programming language.
"""

import difflib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails

_LONGEST = 600
_UNKNOWN = ("extra_forbidden", "unexpected_keyword_argument")
_MISSING = ("missing", "missing_keyword_only_argument")
_KEYS_WITH_VALUES = "keys with values (key: value)"
_WANTED = {
    "model_type": _KEYS_WITH_VALUES,
    "model_attributes_type": _KEYS_WITH_VALUES,
    "dataclass_type": _KEYS_WITH_VALUES,
    "dict_type": _KEYS_WITH_VALUES,
    "mapping_type": _KEYS_WITH_VALUES,
    "arguments_type": _KEYS_WITH_VALUES,
    "list_type": "a list ([a, b], or lines that begin with -)",
    "tuple_type": "a list ([a, b], or lines that begin with -)",
    "string_type": "text",
    "string_pattern_mismatch": "another text",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "int_parsing_size": "a smaller number",
    "float_type": "a number",
    "float_parsing": "a number",
    "finite_number": "a finite number",
    "date_type": "a date such as 2027-01-31",
    "date_parsing": "a date such as 2027-01-31",
    "date_from_datetime_parsing": "a date such as 2027-01-31",
    "date_from_datetime_inexact": "a date such as 2027-01-31, without a time",
}


class Strict(BaseModel):
    """No room for an unknown key."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def _no_truth(value: object) -> object:
    if isinstance(value, bool):
        raise ValueError(f"should be a number, not {str(value).lower()}")
    return value


# Numbers that true and false are not: Python would take them for 1 and 0.
Number = Annotated[float, BeforeValidator(_no_truth), Field(allow_inf_nan=False)]
KeysAt = Callable[[Sequence[int | str]], Iterable[str]]  # the keys that are valid at a place in a file
Whole = Annotated[int, BeforeValidator(_no_truth)]


def first_wrong(error: ValidationError, data: Any, keys_at: KeysAt) -> str:
    """The first thing wrong in the data of a file: a misspelt key before the key that it leaves missing."""
    wrong = error.errors(include_url=False)
    first = next((one for kinds in (_UNKNOWN, ("value_error",)) for one in wrong if one["type"] in kinds), wrong[0])
    loc = _in_file(first["loc"], data, missing=first["type"] in _MISSING)
    place = ".".join(map(str, loc)) or "the file"
    if first["type"] in _UNKNOWN:
        return f"{place}: {unknown('key', str(loc[-1]), keys_at(loc[:-1]))}"[:_LONGEST]
    if data is None:
        return f"it is empty (keys: {', '.join(keys_at(()))})"[:_LONGEST]
    return f"{place}: {_said(first)}"[:_LONGEST]


def unknown(what: str, name: str, choices: Iterable[str]) -> str:
    """'unknown key, did you mean nodes? (choices: …)'."""
    known = list(choices)
    return f"unknown {what}{meant(name, known)} (choices: {', '.join(known)})"


def meant(name: str, choices: Iterable[str]) -> str:
    """', did you mean nodes?', where one is near."""
    near = difflib.get_close_matches(name.casefold(), {choice.casefold(): choice for choice in choices}, n=1)
    exact = next((choice for choice in choices for one in near if choice.casefold() == one), None)
    return f", did you mean {exact}?" if exact else ""


def keys_of(model: type[BaseModel], loc: Iterable[Any]) -> list[str]:
    """The keys that are valid at a place in a file of the model."""
    for part in loc:
        if isinstance(part, str) and part in model.model_fields:
            model = next(_models_in(model.model_fields[part].annotation), model)
    return list(model.model_fields)


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from _models_in(part)


def _in_file(loc: Iterable[int | str], data: Any, *, missing: bool) -> list[int | str]:
    """The parts of a place that stand in the file: of a value that may be several things, pydantic names each tried."""
    found: list[int | str] = []
    for part in loc:
        if (isinstance(data, Mapping) and part in data) or (isinstance(data, list) and isinstance(part, int)):
            data = data[part]  # type: ignore[index]
            found.append(part)
        elif missing:
            found.append(part)
    return found


def _said(problem: ErrorDetails) -> str:
    kind, given = problem["type"], problem["input"]
    if kind in _MISSING:
        return "missing"
    if kind == "value_error":
        return " ".join(problem["msg"].split()).removeprefix("Value error, ")
    said = problem["msg"].removeprefix("Input ").removeprefix("Value ")
    wanted = f"should be {_WANTED[kind]}" if kind in _WANTED else " ".join(f"{said[:1].lower()}{said[1:]}".split())
    near = meant(given, re.findall(r"'([^']+)'", wanted)) if kind == "literal_error" and isinstance(given, str) else ""
    return f"{wanted}, not {_shown(given)}{near}"


def _shown(given: Any) -> str:
    if isinstance(given, Mapping):
        return "keys with values"
    if isinstance(given, list | tuple):
        return "a list"
    if given is None or given == "":
        return "nothing"
    return str(given).lower() if isinstance(given, bool) else repr(given)[:80]
