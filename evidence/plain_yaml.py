"""YAML that may come from anybody: policies, profiles, references, a provider's record, costs.

No object is made but plain data. Size, depth, values and numbers are limited; aliases (a few lines of them can make
gigabytes), tags and a key given twice (readers differ in which of the two counts) are refused.
"""

import math
import os
from collections.abc import Hashable
from pathlib import Path
from typing import Any

import yaml

from .plain_files import NotPlain, small_file

LARGEST = 256 * 1024
DEEPEST = 12
MOST_NODES = 20_000
_LONGEST_NUMBER = 64


class UnsafeYaml(ValueError):
    """A file or text that is no YAML, or more of it than is read; one line, without the file's name."""


def plain_text(file: Path) -> str:
    """The text of a plain file that a user names, who may name a link. Raises UnsafeYaml for what is none, cannot be
    read or is too long."""
    try:
        real = Path(os.path.realpath(file))  # Path.resolve raises RuntimeError where links go in a ring
        return small_file(real, LARGEST).decode("utf-8")
    except NotPlain as error:
        raise UnsafeYaml(str(error)) from error
    except UnicodeDecodeError as error:
        raise UnsafeYaml(f"cannot be read: not UTF-8 text (byte {error.start})") from error
    except (OSError, ValueError) as error:
        raise UnsafeYaml(f"cannot be read: {getattr(error, 'strerror', None) or error}") from error


def plain_documents(text: str) -> list[Any]:
    """The documents of a text as plain data. Raises UnsafeYaml."""
    if len(text) > LARGEST:
        raise UnsafeYaml(f"over {LARGEST >> 10} KiB: not read")
    try:
        _refuse_excess(text)
        return list(yaml.load_all(text, Loader=_PlainLoader))
    except UnsafeYaml:
        raise
    except (yaml.YAMLError, ValueError, ArithmeticError, RecursionError) as error:
        raise UnsafeYaml(f"no valid YAML: {' '.join(str(error).split())[:300]}") from error


def _refuse_excess(text: str) -> None:
    """Look at the events before anything is built."""
    depth = nodes = 0
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        if isinstance(event, yaml.AliasEvent):
            raise UnsafeYaml(f"line {_line(event)}: aliases (*name) are not allowed")
        if getattr(event, "tag", None) is not None:
            raise UnsafeYaml(f"line {_line(event)}: tags (!name) are not allowed")
        nodes += isinstance(event, yaml.NodeEvent)
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > DEEPEST or nodes > MOST_NODES:
            what = f"nested deeper than {DEEPEST}" if depth > DEEPEST else f"over {MOST_NODES} values"
            raise UnsafeYaml(f"line {_line(event)}: {what}")


def _line(event: yaml.Event | yaml.Node) -> int | str:
    return event.start_mark.line + 1 if event.start_mark else "?"


class _PlainLoader(yaml.SafeLoader):
    """Keys stand once, and numbers are finite and of 64 bits."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        """A mapping, unless a key stands in it twice."""
        keys = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        if len(set(keys)) < len(keys):
            doubled = next(key for key in keys if keys.count(key) > 1)
            raise UnsafeYaml(f"line {_line(node)}: key {doubled[:80]!r} stands twice")
        return super().construct_mapping(node, deep=deep)

    def number(self, node: yaml.ScalarNode) -> int | float:
        """A number that every reader understands alike."""
        if len(node.value) <= _LONGEST_NUMBER:
            whole = node.tag == "tag:yaml.org,2002:int"
            value = self.construct_yaml_int(node) if whole else self.construct_yaml_float(node)
            if math.isfinite(value) and (not whole or -(2**63) <= value < 2**63):
                return value
        raise UnsafeYaml(f"line {_line(node)}: {node.value[:40]!r} is no finite number of 64 bits")


_PlainLoader.add_constructor("tag:yaml.org,2002:int", _PlainLoader.number)
_PlainLoader.add_constructor("tag:yaml.org,2002:float", _PlainLoader.number)
