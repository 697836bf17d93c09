"""doctor: what would keep a run from working."""

import sys
from pathlib import Path

import click

from .answers import one_line_errors
from .arguments import BUNDLE, LISTEN, REMOTE_PYTHON, SSH
from .screen import console


@click.command()
@click.option(
    "--scratch",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(),
    metavar="DIR",
    help="Where filesystem and checkpoint probes would write. [default: here]",
)
@click.option(
    "--hosts", default=None, metavar="NODESET", help="Look at these hosts by ssh, and not at this machine: node[01-16]."
)
@SSH
@REMOTE_PYTHON
@LISTEN
@BUNDLE
@click.option("--json", "as_json", is_flag=True, help="Print the findings as one JSON document on stdout.")
def doctor(
    *,
    scratch: Path,
    hosts: str | None,
    ssh: str | None,
    remote_python: str | None,
    listen: str | None,
    bundle: str | None,
    as_json: bool,
) -> None:
    """Say what on this machine would keep a run from working, and how to mend it. Exits with 6 for a problem.

    With --hosts: whether ssh reaches each host, its software is as here, ports are open both ways to here and among the
    hosts, its clock agrees, its scratch directory can be written, and which hosts share it. The hosts need nothing but
    a Python for that; with --bundle they need not have hwlottery either way.
    """
    with one_line_errors():
        from ..runner.command import advice_for
        from ..runner.doctor_view import show_advice

        advice = advice_for(scratch, hosts, ssh=ssh, remote_python=remote_python, listen=listen, bundle=bundle)
        sys.exit(6 if show_advice(advice, console(as_json), as_json=as_json) else 0)
