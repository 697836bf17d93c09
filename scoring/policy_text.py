"""Reading YAML that may come from anybody: no object is made but plain data, and size, depth and aliases are limited.

A run directory carries its policy as text, so a policy is untrusted input.
"""

from typing import Any

import yaml

from ..evidence import HwlotteryError

LARGEST = 256 * 1024
DEEPEST = 12
MOST_NODES = 20_000


class PolicyError(HwlotteryError):
    """A policy cannot be used; the message is one line naming file, key and, where there are some, the choices."""


def plain_documents(text: str, where: str) -> list[Any]:
    """The documents of a YAML text as plain data. Raises PolicyError; `where` names the file in it."""
    if len(text) > LARGEST:
        raise PolicyError(f"{where}: over {LARGEST >> 10} KiB: not read")
    try:
        _refuse_excess(text, where)
        return list(yaml.safe_load_all(text))
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise PolicyError(f"{where}: no valid YAML: {' '.join(str(error).split())[:300]}") from error


def _refuse_excess(text: str, where: str) -> None:
    """Look at the events before anything is built: an alias can make a few lines into gigabytes."""
    depth = nodes = 0
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        if isinstance(event, yaml.AliasEvent):
            raise PolicyError(f"{where}: line {_line(event)}: aliases (*name) are not allowed")
        nodes += isinstance(event, yaml.NodeEvent)
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > DEEPEST or nodes > MOST_NODES:
            what = f"nested deeper than {DEEPEST}" if depth > DEEPEST else f"over {MOST_NODES} values"
            raise PolicyError(f"{where}: line {_line(event)}: {what}")


def _line(event: yaml.Event) -> int | str:
    return event.start_mark.line + 1 if event.start_mark else "?"
