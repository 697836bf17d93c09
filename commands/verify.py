"""verify: is a run directory whole and unaltered, and who signed it?"""

import sys
from pathlib import Path

import click

from .answers import one_line_errors
from .arguments import FILE, RUN
from .screen import console


@click.command()
@click.argument("path", metavar="RUN", type=RUN)
@click.option(
    "--allowed-signers",
    type=FILE,
    default=None,
    metavar="FILE",
    help="Whom you trust: lines of NAME KEY, as ssh-keygen and git read them. Nobody else's signature will do.",
)
@click.option("--signer", type=FILE, default=None, metavar="KEY.pub", help="The public key that must have signed it.")
@click.option("--json", "as_json", is_flag=True, help="Print the problems as one JSON document on stdout.")
def verify(path: Path, allowed_signers: Path | None, signer: Path | None, as_json: bool) -> None:
    """Check that a run directory is whole and unaltered, and its signature. Exits with 6 where it is not.

    Whether it is signed is said; that it must be, and by whom, is asked for by --allowed-signers or --signer.
    """
    if allowed_signers and signer:
        raise click.UsageError("give --allowed-signers or --signer, not both")
    with one_line_errors():
        from ..evidence.signatures import signature_of
        from ..reports.problems import show_problems

        signature = signature_of(path, allowed=allowed_signers, signer=signer)
        must = bool(allowed_signers or signer)
        bad = show_problems(path, console(as_json), signature, must_be_signed=must, as_json=as_json)
        sys.exit(6 if bad else 0)
