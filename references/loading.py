"""Loading a file of references, which may be anybody's: nothing executes, size and depth are limited, and errors are
one line that names file, key and choices."""

from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from ..evidence import HwlotteryError
from ..evidence.plain_yaml import UnsafeYaml, plain_documents, plain_text
from ..evidence.user_files import first_wrong, keys_of

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
    data = _one_document(text, where)
    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise ReferenceFileError(f"{where}: {first_wrong(error, data, partial(keys_of, model))}") from error


def _one_document(text: str, where: str) -> Any:
    try:
        documents = [document for document in plain_documents(text) if document is not None]
    except UnsafeYaml as error:
        raise ReferenceFileError(f"{where}: {error}") from error
    if len(documents) > 1:
        raise ReferenceFileError(f"{where}: {len(documents)} documents (parted by ---): one is read")
    return documents[0] if documents else None
