"""bundle: one file that brings hwlottery onto nodes."""

from pathlib import Path

import click

from .answers import one_line_errors
from .arguments import FILE


@click.command()
@click.option(
    "-o", "--output", type=FILE, default=None, help="Where to write it. [default: by version and Python, here]"
)
@click.option("--python", default=None, metavar="X.Y", help="The nodes' Python. [default: as here]")
@click.option(
    "--platform",
    "where",
    default=None,
    metavar="TAG",
    help="The nodes' platform: manylinux_2_28_aarch64, say. [default: machines as here, with glibc 2.28 or newer]",
)
@click.option(
    "--head", is_flag=True, help="Also what judging and the report need: for Slurm, where the head is one of the nodes."
)
def bundle(*, output: Path | None, python: str | None, where: str | None, head: bool) -> None:
    """Make one file that brings hwlottery onto nodes that have none and reach no registry.

    It holds hwlottery's wheel and what it needs, without torch, which stays the nodes' own. `run --hosts` and `launch
    slurm` take it with --bundle; `python3 FILE -m hwlottery …` runs from it anywhere. Fetches from the package index
    that pip is set to.
    """
    with one_line_errors():
        from ..cluster.bundle import default_name, make_bundle

        made = make_bundle(
            output or Path(default_name(python, where, head=head)), python=python, where=where, head=head
        )
        found = made.manifest
        packages = ", ".join(f"{wheel.name} {wheel.version}" for wheel in found.wheels)
        click.echo(f"{packages}\n", err=True)
        click.echo(
            f"wrote {made.path}: {made.size / 1e6:.1f} MB, {len(found.wheels)} wheels, hwlottery {found.hwlottery} for "
            f"Python {found.python} on {found.platform}{', head and nodes' if head else ''}"
        )
