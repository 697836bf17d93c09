"""What run and recheck share: who leads, how nodes are reached, the run or its plan, and where the results lie."""

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .answers import sign_measured
from .screen import console

if TYPE_CHECKING:
    from rich.console import Console

    from ..runner.joining import Reach
    from ..runner.preview import Preview

    # What measures, once nodes can be reached: it gives the run's directory, or the plan where only that is asked for.
    Work = Callable[[Reach, Console], Path | Preview]


@dataclass(frozen=True, kw_only=True, slots=True)
class Starting:
    """The options of a command that measures, but for what the run is to be."""

    dry_run: bool
    as_json: bool
    ssh: str | None
    remote_python: str | None
    listen: str | None
    join_within: float
    allow_unlike: bool
    bundle: str | None
    key: Path | None
    plain: bool
    quiet: bool = False


def taken_apart(given: Mapping[str, Any]) -> tuple[Starting, dict[str, Any]]:
    """How a run is started and told, and the rest: what it is to be."""
    names = {field.name for field in fields(Starting)}
    of_start = {name: value for name, value in given.items() if name in names}
    return Starting(**of_start), {name: value for name, value in given.items() if name not in names}


def stated(context: click.Context) -> set[str]:
    """The options that stand on the command line."""
    source = context.get_parameter_source
    return {name for name in context.params if source(name) == click.core.ParameterSource.COMMANDLINE}


def command_line() -> tuple[str, ...]:
    """The command as it was given, for the run's record."""
    return ("hwlottery", *sys.argv[1:])


def leads(starting: Starting, hosts: str | None) -> bool:
    """Whether this process leads: any other of a launcher's takes part until the run ends, and that was all.

    Raises RunError where it cannot take part, and where the key that shall sign cannot.
    """
    from ..evidence.signatures import try_key
    from ..runner.launched import attended

    if not starting.dry_run and attended(hosts, starting.join_within):
        return False
    if starting.key is not None:
        try_key(starting.key)
    return True


def new_run(starting: Starting, **options: Any) -> "Work":
    """The work of a new run, or of its plan; `options` are those of runner.command.Options."""
    from ..runner.command import Options, planned, run_new

    def work(reach: "Reach", shown: "Console") -> "Path | Preview":
        chosen = Options(command=command_line(), reach=reach, **options)
        return planned(chosen) if starting.dry_run else run_new(chosen, shown)

    return work


def measured(starting: Starting, work: "Work", *, hosts: str | None, resumed: Path | None = None) -> Path | None:
    """Do the work, say where its results lie, and sign them; None where a plan was asked for, which is shown."""
    from ..runner.command import bundle_for, show_plan
    from ..runner.launched import say_where

    shown = console(starting.as_json, quiet=starting.quiet, plain=starting.plain)
    with bundle_for(None if starting.dry_run else starting.bundle, hosts, resumed) as carried:
        reach = _reach(starting, hosts, carried)
        out = work(reach, shown)
        if not isinstance(out, Path):
            show_plan(out, shown, as_json=starting.as_json)
            return None
        say_where(reach, out, shown)
        if starting.key is not None:
            sign_measured(out, starting.key)
    return out


def _reach(starting: Starting, hosts: str | None, bundle: Any) -> "Reach":
    from ..runner.command import reach_from
    from ..runner.launched import within_launcher

    names = ("ssh", "remote_python", "listen", "join_within", "allow_unlike")
    reach = reach_from(**{name: getattr(starting, name) for name in names}, bundle=bundle)
    return reach if starting.dry_run else within_launcher(reach, hosts)
