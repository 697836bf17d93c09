"""YAML that may come from anybody: no object is made but plain data, and size, depth and aliases are limited."""

from typing import Any

import yaml

LARGEST = 256 * 1024
DEEPEST = 12
MOST_NODES = 20_000


class UnsafeYaml(ValueError):
    """A text that is no YAML, or more of it than is read; the message is one line without the file's name."""


def plain_documents(text: str) -> list[Any]:
    """The documents of a text as plain data. Raises UnsafeYaml."""
    if len(text) > LARGEST:
        raise UnsafeYaml(f"over {LARGEST >> 10} KiB: not read")
    try:
        _refuse_excess(text)
        return list(yaml.safe_load_all(text))
    except UnsafeYaml:
        raise
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise UnsafeYaml(f"no valid YAML: {' '.join(str(error).split())[:300]}") from error


def _refuse_excess(text: str) -> None:
    """Look at the events before anything is built: an alias can make a few lines into gigabytes."""
    depth = nodes = 0
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        if isinstance(event, yaml.AliasEvent):
            raise UnsafeYaml(f"line {_line(event)}: aliases (*name) are not allowed")
        nodes += isinstance(event, yaml.NodeEvent)
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > DEEPEST or nodes > MOST_NODES:
            what = f"nested deeper than {DEEPEST}" if depth > DEEPEST else f"over {MOST_NODES} values"
            raise UnsafeYaml(f"line {_line(event)}: {what}")


def _line(event: yaml.Event) -> int | str:
    return event.start_mark.line + 1 if event.start_mark else "?"
