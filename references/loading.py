"""Loading a reference file, with errors that name file and key."""

from pathlib import Path
from typing import TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from ..evidence import HwlotteryError

FOLDER = Path(__file__).parent

_M = TypeVar("_M", bound=BaseModel)


class ReferenceFileError(HwlotteryError):
    """A reference file cannot be used; the message is one line naming file and key."""


def load(file: Path, model: type[_M]) -> _M:
    """Read a YAML file as a model. Raises ReferenceFileError."""
    try:
        content = yaml.safe_load(file.read_text(encoding="utf-8"))
        return model.model_validate(content)
    except ValidationError as error:
        raise ReferenceFileError(f"{file.name}: {first_error(error)}") from error
    except (OSError, yaml.YAMLError, UnicodeDecodeError) as error:
        raise ReferenceFileError(f"{file.name}: {' '.join(str(error).split())[:300]}") from error


def first_error(error: ValidationError) -> str:
    """The first thing wrong, as 'key.0.key: what is wrong'."""
    first = error.errors(include_url=False)[0]
    place = ".".join(str(part) for part in first["loc"]) or "the file"
    return f"{place}: {' '.join(str(first['msg']).split())}"
