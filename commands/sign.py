"""sign: put an ssh signature beside a finished run."""

from pathlib import Path

import click

from .answers import one_line_errors
from .arguments import FILE, RUN


@click.command()
@click.argument("path", metavar="RUN", type=RUN)
@click.option(
    "--key",
    type=FILE,
    required=True,
    metavar="KEY",
    help="An ssh key: the private one, or the public one of a key in your ssh-agent.",
)
def sign(path: Path, key: Path) -> None:
    """Sign a finished run with an ssh key, as `run --sign` does. Only a run that is whole is signed."""
    with one_line_errors():
        from ..evidence import RunError, read_run
        from ..evidence.signatures import sign as sign_run
        from ..scoring import defects

        run = read_run(path)
        if run.problems or defects(run):
            raise RunError(f"{path} is not whole, and was not signed: hwlottery verify {path}")
        click.echo(f"signed: {sign_run(path, key)}")
