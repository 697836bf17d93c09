"""export: a run in other forms."""

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .answers import one_line_errors, write_whole
from .arguments import FILE, PROVIDER_RECORD, RUN

if TYPE_CHECKING:
    from ..reports.exports import Format

FORMATS = ("csv", "junit", "prometheus", "ticket", "claim", "exclude", "hostfile", "provider-template")


@click.command()
@click.argument("path", metavar="RUN", type=RUN)
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    required=True,
    help="csv: every measurement. junit: the checks, for a CI system. prometheus: for node_exporter's textfile "
    "collector. ticket: findings for the provider, without prices. claim: outages by serial number, from the run and "
    "provider.yaml. exclude: nodes for srun --exclude. hostfile: the nodes that remain, with their slots. "
    "provider-template: a provider.yaml to fill in.",
)
@click.option(
    "-o", "--output", type=FILE, default=None, help="Where to write; a ticket to NAME.zip is packed. [default: stdout]"
)
@click.option(
    "--node", "nodes", multiple=True, metavar="NODE", help="With ticket: of this node alone; may be repeated."
)
@PROVIDER_RECORD
@click.option(
    "--today",
    type=click.DateTime(["%Y-%m-%d"]),
    default=None,
    metavar="DATE",
    help="With claim: count the days that are left from this day. [default: today, UTC]",
)
def export(
    *,
    path: Path,
    form: "Format",
    output: Path | None,
    nodes: tuple[str, ...],
    provider_record: Path | None,
    today: datetime | None,
) -> None:
    """Write a run in another form. Prints or writes, and never acts on a cluster."""
    if nodes and form != "ticket":
        raise click.UsageError("--node goes with --format ticket")
    if (today or provider_record) and form != "claim":
        raise click.UsageError("--today and --provider-record go with --format claim")
    with one_line_errors():
        from ..evidence import read_run
        from ..reports.exports import Wanted, exported
        from ..scoring.provider_record import provider_of

        zipped = form == "ticket" and output is not None and output.suffix == ".zip"
        record = provider_of(path, provider_record) if form == "claim" else None
        day = (today or datetime.now(UTC)).date()
        found = exported(read_run(path), form, Wanted(nodes=nodes, zipped=zipped, today=day, record=record))
        for note in found.notes:
            click.echo(f"note: {note}", err=True)
        if output is None:
            click.echo(found.text, nl=False)
        else:
            write_whole(output, found.content, inside=path)
