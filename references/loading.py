"""Loading a file of references, which may be anybody's: nothing executes, size and depth are limited, and errors are
one line that names file, key and choices."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError

from ..evidence import HwlotteryError
from ..evidence.plain_yaml import UnsafeYaml, plain_documents, plain_text

FOLDER = Path(__file__).parent

_M = TypeVar("_M", bound=BaseModel)


class ReferenceFileError(HwlotteryError):
    """A file of references cannot be used; the message is one line naming file and key."""


def text_of(file: Path) -> str:
    """The text of a user's file. Raises ReferenceFileError."""
    try:
        return plain_text(file)
    except UnsafeYaml as error:
        raise ReferenceFileError(f"{file}: {error}") from error


def model_from_text(text: str, where: str, model: type[_M]) -> _M:
    """YAML as a model; `where` names the file in errors. Raises ReferenceFileError."""
    try:
        documents = plain_documents(text)
        return model.model_validate(documents[0] if len(documents) == 1 else {"documents": len(documents)})
    except ValidationError as error:
        raise ReferenceFileError(f"{where}: {_first_error(error, model)}") from error
    except UnsafeYaml as error:
        raise ReferenceFileError(f"{where}: {error}") from error


def _first_error(error: ValidationError, model: type[BaseModel]) -> str:
    """The first thing wrong, as 'accelerators.0.watts: unknown key (choices: …)'; a misspelt key before others."""
    wrong = error.errors(include_url=False)
    first = next((one for one in wrong if one["type"] == "extra_forbidden"), wrong[0])
    place = ".".join(str(part) for part in first["loc"]) or "the file"
    said = " ".join(str(first["msg"]).split()).removeprefix("Value error, ")
    if first["type"] == "extra_forbidden":
        said = f"unknown key (choices: {', '.join(_keys_at(model, first['loc'][:-1]))})"
    return f"{place}: {said}"[:600]


def _keys_at(model: type[BaseModel], loc: tuple[Any, ...]) -> tuple[str, ...]:
    for part in loc:
        if isinstance(part, str) and part in model.model_fields:
            model = next(_models_in(model.model_fields[part].annotation), model)
    return tuple(model.model_fields)


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from _models_in(part)
