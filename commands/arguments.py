"""Arguments and options that several commands share."""

import math
from pathlib import Path
from typing import Any

import click


class _RunDirectory(click.Path):
    """A folder that is there; what is none is told with what to give."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter as error:
            told = error.message.rstrip(".").removeprefix("Directory ")
            raise click.BadParameter(f"{told}: give the directory of a run, as hwlottery run makes it") from error


RUN = _RunDirectory(exists=True, file_okay=False, path_type=Path)
FILE = click.Path(dir_okay=False, path_type=Path)
EXIT_CODES = """\b
Exit codes: 0 GO, 5 CONDITIONAL, 3 NO-GO, 4 INCONCLUSIVE; 2 something to mend before anything runs;
6 cut short by the surroundings (disk full), or verify or doctor found something;
130 Ctrl-C, 143 SIGTERM, 129 SIGHUP (a lost ssh session)."""


class Number(click.FloatRange):
    """A number in a range, which nan is not, though it passes any."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The number."""
        found = super().convert(value, param, ctx)
        if math.isnan(found):
            self.fail("not a number", param, ctx)
        return found


# As many as a run may have (evidence.header says it too: this file is read for --help, and imports nothing of weight).
NODES = click.IntRange(min=1, max=8192)
ACCELERATORS = click.IntRange(min=0, max=256)
A_WEEK_S = 7 * 24 * 3600
SECONDS = click.IntRange(min=1, max=A_WEEK_S)


REFERENCES = click.option(
    "--references",
    type=FILE,
    default=None,
    metavar="FILE",
    help="A YAML file of your own references, before those that come with hwlottery: what your hardware can do.",
)

SIGN = click.option(
    "--sign",
    "key",
    type=FILE,
    default=None,
    metavar="KEY",
    help="Sign the finished run with this ssh key (or the .pub of one in your ssh-agent), for verify.",
)
RUN_FLOPS = click.option(
    "--run-flops",
    type=Number(min=0, min_open=True, max=1e40),
    default=None,
    metavar="FLOPS",
    help="The model FLOPs of a training run, such as 1e24: how long it would take and, with a price, what it costs.",
)
COSTS = click.option(
    "--costs",
    type=FILE,
    default=None,
    metavar="FILE",
    help="A YAML file of what a rental costs beside the GPUs, and how failed nodes are replaced (docs/economics.md).",
)

PROVIDER_RECORD = click.option(
    "--provider-record",
    type=FILE,
    default=None,
    metavar="FILE",
    help="What the provider promised and did: dates, tickets, replacements. [default: RUN/provider.yaml, if there]",
)

# How the nodes of --hosts are reached.
SSH = click.option(
    "--ssh",
    default=None,
    envvar="HWLOTTERY_SSH",
    metavar="ARGUMENTS",
    help="With --hosts: more arguments for ssh, such as '-F FILE'. Also by the variable HWLOTTERY_SSH.",
)
REMOTE_PYTHON = click.option(
    "--remote-python",
    default=None,
    metavar="COMMAND",
    help="With --hosts: what starts Python on the nodes. [default: the path of the one here; python3 with --bundle]",
)
BUNDLE = click.option(
    "--bundle",
    default=None,
    metavar="FILE|auto",
    help="With --hosts: bring hwlottery to nodes that have none, over their torch, and remove it again. auto makes it.",
)
LISTEN = click.option(
    "--listen",
    default=None,
    metavar="ADDRESS[:PORT]",
    help="With --hosts: where nodes find this machine. [default: its address on the route to the first node]",
)
