"""How commands answer: the verdict shown, what is derived written, and errors that a user can mend as one line."""

import contextlib
import errno
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from .screen import console

if TYPE_CHECKING:
    from ..evidence import Document, Run
    from ..scoring import Policy
    from ..scoring.provider_record import ProviderRecord
    from ..scoring.verdict import Verdict


@dataclass(frozen=True, kw_only=True, slots=True)
class Given:
    """What a run is judged with instead of its own: references, costs, an earlier run to hold it against, and the
    training run that is asked for."""

    references: Path | None = None
    costs: Path | None = None
    baseline: Path | None = None
    run_flops: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Also:
    """Files for other programs, to write beside the verdict."""

    junit: Path | None = None
    prometheus: Path | None = None


def judge(
    path: Path,
    policy: str | None,
    given: Given = Given(),
    *,
    as_json: bool,
    with_report: bool,
    quiet: bool = False,
    plain: bool = False,
    also: Also = Also(),
    provider_record: Path | None = None,
) -> NoReturn:
    """Score a run, show the verdict unless `quiet`, and exit with it."""
    with one_line_errors():
        from ..evidence import read_run
        from ..reports.terminal import show
        from ..scoring import load_policy, score_run, verdict_json

        record = _record_or_note(path, provider_record)
        found = with_given(read_run(path), given)
        chosen: Policy | None = load_policy(policy) if policy else None
        verdict = score_run(found, chosen)
        if chosen is None and given == Given():
            write_derived(path / "verdict.json", verdict_json(verdict))
        shown = console(as_json, quiet=quiet, plain=plain)
        show(verdict, found, shown)
        if record is not None:
            shown.print(f"Delivery and support: {delivery_told(found, record)}", markup=False)
        if with_report:
            page = write_page(found, verdict, path / "report.html", record)
            shown.print(f"report: {page}", markup=False, soft_wrap=True)
        write_also(found, verdict, also)
        if as_json:
            with contextlib.suppress(BrokenPipeError):
                sys.stdout.write(verdict_json(verdict).decode())
        sys.exit(verdict.exit_code)


def write_also(found: "Run", verdict: "Verdict", also: Also) -> None:
    """Write what other programs read, each file whole or not at all."""
    from ..reports import junit, prometheus

    if also.junit is not None:
        write_whole(also.junit, junit.render(verdict).encode(), inside=found.path)
    if also.prometheus is not None:
        write_whole(also.prometheus, prometheus.render(found, verdict).encode(), inside=found.path)


def own_references(file: Path | None) -> "Document | None":
    """The user's file of references as a run carries it. Raises ReferenceFileError."""
    if file is None:
        return None
    from ..references import text_of, with_own

    return with_own(text_of(file), file.name).own


def own_costs(file: Path | None) -> "Document | None":
    """The user's file of costs as a run carries it. Raises CostsError."""
    if file is None:
        return None
    from ..scoring import costs_document

    return costs_document(file)


def with_given(found: "Run", given: Given) -> "Run":
    """The run, to be judged with what is given instead of its own. Raises ReferenceFileError or CostsError."""
    import msgspec

    from ..evidence import read_run

    references, costs = own_references(given.references), own_costs(given.costs)
    own = {"references": references, "costs": costs, "run_flops": given.run_flops}
    changed = {name: value for name, value in own.items() if value is not None}
    before = read_run(given.baseline) if given.baseline is not None else found.baseline
    header = msgspec.structs.replace(found.header, **changed) if changed else found.header
    return msgspec.structs.replace(found, header=header, baseline=before)


def _record_or_note(path: Path, given: Path | None) -> "ProviderRecord | None":
    """The provider's record. One beside the run that cannot be read is told and left out, for it is no part of the
    verdict; one that was given raises ProviderFileError."""
    from ..scoring.provider_record import ProviderFileError, provider_of

    try:
        return provider_of(path, given)
    except ProviderFileError as error:
        if given is not None:
            raise
        from ..reports.plain_text import printable

        click.echo(f"note: {printable(error, 600)}: left out, it is no part of the verdict", err=True)
        return None


def delivery_told(found: "Run", record: "ProviderRecord") -> str:
    """What a provider's record says against what was promised, in a sentence."""
    from ..reports.sections.delivery import told
    from ..scoring.delivery import judged_delivery

    return told(judged_delivery(found, record))


def write_page(found: "Run", verdict: "Verdict", place: Path, record: "ProviderRecord | None" = None) -> Path:
    """Write a run's page, and say where."""
    from ..reports.page import render

    write(place, render(found, verdict, record), inside=found.path)
    return place


def write(place: Path, text: str, *, inside: Path) -> None:
    """Write what is derived; an error names it. In a run directory, which may be another's, a link that stands in the
    way is replaced and never followed; elsewhere the user's own links are."""
    from ..evidence.writing import replace_file

    try:
        if place.parent == inside:
            replace_file(place, text.encode())
        else:
            place.write_text(text, encoding="utf-8")
    except OSError as error:
        raise OSError(error.errno, f"{error.strerror}: the page or table was not written", str(place)) from error


def write_whole(place: Path, content: bytes, *, inside: Path) -> None:
    """Write what another program may be reading: it sees what stood there, or all of the new, never a part.

    A user's own link is followed, one in the run directory is not; a device or pipe is written to as it is.
    """
    from ..evidence.writing import replace_file

    try:
        if place.parent == inside or not place.exists():
            replace_file(place, content)
        elif place.is_file():
            replace_file(place.resolve(), content)
        else:
            place.write_bytes(content)
    except OSError as error:
        raise OSError(error.errno, f"{error.strerror}: nothing was written", str(place)) from error


def write_derived(place: Path, content: bytes) -> None:
    """Derived files can be made again: a run directory that may not be written is judged all the same."""
    from ..evidence.writing import replace_file

    try:
        replace_file(place, content)
    except OSError as error:
        click.echo(f"note: {place} not written: {error.strerror}", err=True)


def sign_measured(run: Path, key: Path) -> None:
    """Sign what was measured. A key that fails now costs the signature, and never the run: it can be signed later."""
    from ..evidence import HwlotteryError
    from ..evidence.signatures import sign

    try:
        sign(run, key)
    except (HwlotteryError, OSError) as error:
        click.echo(f"note: not signed: {error}; later: hwlottery sign {run} --key {key}", err=True)


@contextlib.contextmanager
def one_line_errors() -> Iterator[None]:
    """What a user can mend is one line and its exit code, never a traceback."""
    try:
        yield
    except BrokenPipeError:
        sys.exit(0)  # whoever read our output has left, with what they wanted
    except KeyboardInterrupt:
        _say_and_exit("stopped", 130)
    except OSError as error:
        code = 6 if error.errno in (errno.ENOSPC, errno.EDQUOT) else 2
        _say_and_exit(f"{error.filename or 'the system'}: {error.strerror or error}", code)
    except Exception as error:
        from ..evidence import HwlotteryError

        if not isinstance(error, HwlotteryError):
            raise
        _say_and_exit(str(error), error.exit_code)


def _say_and_exit(message: str, code: int) -> NoReturn:
    """One line on stderr, whatever the message holds: control characters in it could drive a terminal."""
    click.echo("hwlottery: " + " ".join("".join(c if c.isprintable() else " " for c in message).split()), err=True)
    sys.exit(code)
