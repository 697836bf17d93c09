"""Reading a policy's YAML, which may come from anybody: a run directory carries its policy as text."""

from typing import Any

from ..evidence import HwlotteryError
from ..references.plain_yaml import UnsafeYaml
from ..references.plain_yaml import plain_documents as documents_of


class PolicyError(HwlotteryError):
    """A policy cannot be used; the message is one line naming file, key and, where there are some, the choices."""


def plain_documents(text: str, where: str) -> list[Any]:
    """The documents of a YAML text as plain data. Raises PolicyError; `where` names the file in it."""
    try:
        return documents_of(text)
    except UnsafeYaml as error:
        raise PolicyError(f"{where}: {error}") from error
