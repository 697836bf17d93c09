"""export: a run in other forms."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from .answers import one_line_errors, write_whole
from .arguments import FILE, RUN

if TYPE_CHECKING:
    from ..reports.exports import Format

FORMATS = ("csv", "junit", "prometheus", "ticket", "exclude", "hostfile")


@click.command()
@click.argument("path", metavar="RUN", type=RUN)
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    required=True,
    help="csv: every measurement. junit: the checks, for a CI system. prometheus: for node_exporter's textfile "
    "collector. ticket: findings for the provider, without prices. exclude: nodes for srun --exclude. "
    "hostfile: the nodes that remain, with their slots.",
)
@click.option(
    "-o", "--output", type=FILE, default=None, help="Where to write; a ticket to NAME.zip is packed. [default: stdout]"
)
@click.option(
    "--node", "nodes", multiple=True, metavar="NODE", help="With ticket: of this node alone; may be repeated."
)
def export(
    path: Path,
    form: "Format",
    output: Path | None,
    nodes: tuple[str, ...],
) -> None:
    """Write a run in another form. Prints or writes, and never acts on a cluster."""
    if nodes and form != "ticket":
        raise click.UsageError("--node goes with --format ticket")
    with one_line_errors():
        from ..evidence import read_run
        from ..reports.exports import Wanted, exported

        zipped = form == "ticket" and output is not None and output.suffix == ".zip"
        found = exported(read_run(path), form, Wanted(nodes=nodes, zipped=zipped))
        for note in found.notes:
            click.echo(f"note: {note}", err=True)
        if output is None:
            click.echo(found.text, nl=False)
        else:
            write_whole(output, found.content, inside=path)
