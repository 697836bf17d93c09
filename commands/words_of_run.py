"""The words after `launch … --`: read by the parser of the command that they are for, before anything is queued."""

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from .answers import own_costs, own_references
from .recheck import recheck
from .run import run
from .starting import stated

# These say how nodes are reached by ssh, which is not how a scheduler's are.
_OF_SSH = ("bundle", "hosts", "remote_python", "ssh")


@dataclass(frozen=True, kw_only=True, slots=True)
class Words:
    """Words that a run, or a recheck, takes: the options that they state, and the values of all."""

    words: tuple[str, ...]
    told: frozenset[str]
    values: dict[str, Any]

    @property
    def out(self) -> Path | None:
        """The run directory, where they say which it is."""
        found: Path | None = self.values.get("resume") or self.values["out"]
        return found


def words_of(words: Sequence[str], *, gpus_per_node: int | None, may_recheck: bool = False) -> Words:
    """Read the words. Raises RunError, or the error of a profile or policy, for what the command would refuse on the
    nodes. A file that is not here may be there: that is noted, and no more."""
    again = may_recheck and [*words[:1]] == ["recheck"]
    context = _parsed(recheck if again else run, words[1:] if again else words)
    found = Words(words=tuple(words), told=frozenset(stated(context)), values=context.params)
    _refuse_together(found, gpus_per_node)
    _refuse_unknown(found.values)
    return found


def _parsed(command: click.Command, words: Sequence[str]) -> click.Context:
    """Parsed as the command itself would, but for paths, which are the nodes'."""
    from ..evidence import RunError

    reader = click.Command(command.name, params=[_anywhere(one) for one in command.params], add_help_option=False)
    try:
        return reader.make_context(command.name, list(words))
    except click.UsageError as error:
        raise RunError(f"after --: {error.format_message()}") from None


def _anywhere(parameter: click.Parameter) -> click.Parameter:
    if not isinstance(parameter.type, click.Path):
        return parameter
    other = copy.copy(parameter)
    other.type = click.Path(path_type=Path)
    return other


def _refuse_together(found: Words, gpus_per_node: int | None) -> None:
    from ..evidence import RunError
    from ..runner.command import refuse_with_resume, refuse_without_join

    of_ssh = [f"--{name.replace('_', '-')}" for name in _OF_SSH if name in found.told]
    if of_ssh:
        raise RunError(f"after --: {', '.join(of_ssh)} is for nodes reached by ssh; here the scheduler starts them")
    if "gpus_per_node" in found.told and gpus_per_node not in (None, found.values["gpus_per_node"]):
        raise RunError("after --: --gpus-per-node is said before it already, and otherwise")
    if found.values.get("join") is None:
        refuse_without_join(set(found.told))
    if found.values.get("resume") is not None:
        refuse_with_resume(set(found.told))


def _refuse_unknown(values: dict[str, Any]) -> None:
    """What has a name is known here as there; a file is read where it is here, too."""
    from ..cluster.node_sets import node_set
    from ..probes.profiles import load_profile
    from ..runner.command import refuse_unknown_probes
    from ..scoring import load_policy

    refuse_unknown_probes(values["only"])
    if values.get("partners") is not None:
        node_set(values["partners"], "--partners")
    for name, load in (("profile", load_profile), ("policy", load_policy)):
        if values[name] is not None and _is_here(values[name]):
            load(values[name])
    for name, read in (("references", own_references), ("costs", own_costs)):
        if values[name] is not None and _is_here(str(values[name]), a_file=True):
            read(values[name])


def _is_here(name: str, *, a_file: bool = False) -> bool:
    """Whether it can be read here: a name always, a file where it is."""
    is_file = a_file or "/" in name or name.endswith((".yaml", ".yml"))
    if is_file and not Path(name).exists():
        click.echo(f"note: {name!r} is not here: the node that leads must have it", err=True)
        return False
    return True
