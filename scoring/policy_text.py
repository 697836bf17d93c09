"""Reading a policy's YAML, which may come from anybody: a run directory carries its policy as text."""

from pathlib import Path
from typing import Any

from ..evidence import HwlotteryError
from ..evidence.plain_yaml import UnsafeYaml, plain_text
from ..evidence.plain_yaml import plain_documents as documents_of


class PolicyError(HwlotteryError):
    """A policy cannot be used; the message is one line naming file, key and, where there are some, the choices."""


def plain_documents(text: str, where: str) -> list[Any]:
    """The documents of a YAML text as plain data. Raises PolicyError; `where` names the file in it."""
    try:
        return documents_of(text)
    except UnsafeYaml as error:
        raise PolicyError(f"{where}: {error}") from error


def text_of(file: Path) -> str:
    """The text of a policy's file. Raises PolicyError."""
    try:
        return plain_text(file)
    except UnsafeYaml as error:
        raise PolicyError(f"{file}: {error}") from error
