"""The command line: wiring and exit codes. What a command needs is imported inside it, so that --help is instant."""

import contextlib
import errno
import io
import math
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn, TextIO

import click

from . import __version__

if TYPE_CHECKING:
    from rich.console import Console

    from .evidence import Run
    from .scoring import Policy
    from .scoring.verdict import Verdict

RUN = click.Path(exists=True, file_okay=False, path_type=Path)
FILE = click.Path(dir_okay=False, path_type=Path)
TIERS = ("bare-root", "bare", "vm-root", "vm", "container-root", "container")
EXIT_CODES = """\b
Exit codes: 0 GO, 5 CONDITIONAL, 3 NO-GO, 4 INCONCLUSIVE; 2 something to mend before anything runs;
6 cut short by the surroundings (disk full), or verify or doctor found something;
130 Ctrl-C, 143 SIGTERM, 129 SIGHUP (a lost ssh session)."""


def _number(_: click.Context, option: click.Parameter, value: float | None) -> float | None:
    """nan passes any range."""
    if value is not None and math.isnan(value):
        raise click.BadParameter("not a number", param=option)
    return value


# How the nodes of --hosts are reached: options that `run` and `doctor` share.
_SSH = click.option(
    "--ssh",
    default=None,
    envvar="HWLOTTERY_SSH",
    metavar="ARGUMENTS",
    help="With --hosts: more arguments for ssh, such as '-F FILE'. Also by the variable HWLOTTERY_SSH.",
)
_REMOTE_PYTHON = click.option(
    "--remote-python",
    default=None,
    metavar="COMMAND",
    help="With --hosts: what starts Python with hwlottery on the nodes. [default: the path of the one here]",
)
_LISTEN = click.option(
    "--listen",
    default=None,
    metavar="ADDRESS[:PORT]",
    help="With --hosts: where nodes find this machine. [default: its address on the route to the first node]",
)


@click.group(context_settings={"help_option_names": ["-h", "--help"]}, epilog=EXIT_CODES)
@click.version_option(__version__, prog_name="hwlottery")
def cli() -> None:
    """Measure a rented GPU cluster, name what to swap, and decide GO or NO-GO with the evidence."""


@cli.command(epilog=EXIT_CODES)
@click.option(
    "--profile",
    default=None,
    metavar="NAME|FILE",
    help="What to measure and for how long: smoke, prolog, quick, acceptance, or a YAML file. [default: smoke]",
)
@click.option(
    "--policy",
    default=None,
    metavar="NAME|FILE",
    help="What is demanded: a name or a YAML file. [default: the profile's]",
)
@click.option("--provider", default=None, help="Who rents the cluster out; shown in the report.")
@click.option("--cluster", default=None, help="Which of the provider's clusters; shown in the report.")
@click.option(
    "--price",
    type=click.FloatRange(min=0, min_open=True, max=1e6),
    callback=_number,
    default=None,
    metavar="USD",
    help="USD a GPU and hour, for the money in plan and report.",
)
@click.option(
    "--tier",
    type=click.Choice(TIERS),
    default=None,
    help="Declare the access tier instead of finding it by capability.",
)
@click.option(
    "--scratch",
    type=click.Path(file_okay=False, path_type=Path),
    default=None,
    metavar="DIR",
    help="Where filesystem and checkpoint probes write: the storage you will train on. [default: here]",
)
@click.option(
    "--hosts",
    default=None,
    metavar="NODESET",
    help="Measure these nodes, reached by ssh: node[01-16], or n1,n2. [default: this machine alone]",
)
@click.option(
    "--gpus-per-node",
    type=click.IntRange(min=0),
    default=None,
    metavar="N",
    help="With --hosts: what each node is to have; 0 for its CPUs. [default: as this machine]",
)
@_SSH
@_REMOTE_PYTHON
@_LISTEN
@click.option(
    "--join-within",
    type=click.FloatRange(min=1),
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="How long nodes may take to join; the run goes on without those that have not.",
)
@click.option(
    "--allow-unlike",
    is_flag=True,
    help="With --hosts: run although a node's torch or Python is another than this machine's.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=None,
    metavar="DIR",
    help="The run directory to make. [default: runs/PROFILE-TIME]",
)
@click.option(
    "--resume",
    type=RUN,
    default=None,
    metavar="RUN",
    help="Go on with a run that was cut short, with its own profile, policy and seed.",
)
@click.option(
    "--rerun-changed",
    is_flag=True,
    help="With --resume: software or hardware has changed since, so measure everything again.",
)
@click.option(
    "--only", multiple=True, metavar="PROBE", help="Run this probe alone, beside inventory; may be given several times."
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="The run's seed.")
@click.option("--dry-run", is_flag=True, help="Say what would run, for how long and for how much money; run nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print the verdict (or plan) as one JSON document on stdout.")
@click.pass_context
def run(
    context: click.Context,
    /,
    *,
    profile: str | None,
    policy: str | None,
    resume: Path | None,
    rerun_changed: bool,
    dry_run: bool,
    as_json: bool,
    ssh: str | None,
    remote_python: str | None,
    listen: str | None,
    join_within: float,
    allow_unlike: bool,
    **wishes: Any,
) -> None:
    """Measure this machine, or the nodes of --hosts; judge, and write the report.

    Any verdict is an answer: the exit code says which. Everything measured is kept in the run directory.
    """
    with _one_line_errors():
        from .probes.profiles import load_profile
        from .runner.command import Options, attended, reach_from, run_new, run_on, show_plan, within_step
        from .scoring import document_for

        if not dry_run and attended(wishes["hosts"], join_within):
            return
        reach = reach_from(
            ssh=ssh, remote_python=remote_python, listen=listen, join_within=join_within, allow_unlike=allow_unlike
        )
        if not dry_run:
            reach = within_step(reach, wishes["hosts"])
        console, command = _console(as_json), ("hwlottery", *sys.argv[1:])
        if resume is not None:
            given = context.get_parameter_source
            stated = {name for name in context.params if given(name) == click.core.ParameterSource.COMMANDLINE}
            out = run_on(resume, stated, rerun_changed=rerun_changed, command=command, reach=reach, console=console)
        else:
            chosen = load_profile(profile or "smoke")
            demanded = document_for(policy, chosen.name)
            options = Options(profile=chosen, policy=demanded, command=command, reach=reach, **wishes)
            if dry_run:
                show_plan(options, console, as_json=as_json)
                return
            out = run_new(options, console)
    _judge(out, None, as_json=as_json, with_report=True)


@cli.command(epilog=EXIT_CODES)
@click.argument("path", metavar="RUN", type=RUN)
@click.option(
    "--policy",
    default=None,
    metavar="NAME|FILE",
    help="Judge by another policy than the run's own; verdict.json then stays as it is.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the verdict as one JSON document on stdout.")
def score(path: Path, policy: str | None, as_json: bool) -> None:
    """Judge a run directory again, on any machine. Exits with the verdict."""
    _judge(path, policy, as_json=as_json, with_report=False)


@cli.command()
@click.argument("path", metavar="RUN", type=RUN)
@click.option("-o", "--output", type=FILE, default=None, help="Where to write the page. [default: RUN/report.html]")
def report(path: Path, output: Path | None) -> None:
    """Write a run's report as one self-contained HTML page. Always judges again first."""
    with _one_line_errors():
        from .evidence import read_run
        from .scoring import score_run

        found = read_run(path)
        written = _write_page(found, score_run(found), output or path / "report.html")
    click.echo(f"wrote {written}")


@cli.command()
@click.argument("path", metavar="RUN", type=RUN)
@click.option("--json", "as_json", is_flag=True, help="Print the problems as one JSON document on stdout.")
def verify(path: Path, as_json: bool) -> None:
    """Check that a run directory is whole and unaltered. Exits with 6 where it is not."""
    with _one_line_errors():
        from .reports.problems import show_problems

        sys.exit(6 if show_problems(path, _console(as_json), as_json=as_json) else 0)


@cli.command()
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
@_SSH
@_REMOTE_PYTHON
@_LISTEN
@click.option("--json", "as_json", is_flag=True, help="Print the findings as one JSON document on stdout.")
def doctor(
    *, scratch: Path, hosts: str | None, ssh: str | None, remote_python: str | None, listen: str | None, as_json: bool
) -> None:
    """Say what on this machine would keep a run from working, and how to mend it. Exits with 6 for a problem.

    With --hosts: whether ssh reaches each host, its software is as here, ports are open both ways, its clock agrees,
    and its scratch directory can be written.
    """
    with _one_line_errors():
        from .runner.command import advice_for
        from .runner.doctor_view import show_advice

        advice = advice_for(scratch, hosts, ssh=ssh, remote_python=remote_python, listen=listen)
        sys.exit(6 if show_advice(advice, _console(as_json), as_json=as_json) else 0)


@cli.command()
@click.argument("name", metavar="METRIC|CHECK|REFERENCE")
@click.option("--json", "as_json", is_flag=True, help="Print the explanation as one JSON document on stdout.")
def explain(name: str, as_json: bool) -> None:
    """Say what a metric means, what a check demands, or where a reference comes from."""
    with _one_line_errors():
        from .reports.explanation import show_explanation

        show_explanation(name, _console(as_json), as_json=as_json)


@cli.command()
@click.argument("scheduler", type=click.Choice(["slurm"]))
@click.option("--nodes", type=click.IntRange(min=1), required=True, metavar="N", help="How many nodes to ask for.")
@click.option("--gpus-per-node", type=click.IntRange(min=0), default=None, metavar="N", help="GPUs to ask for on each.")
@click.option("--time", default="04:00:00", show_default=True, metavar="LIMIT", help="The job's time limit.")
@click.option("--partition", default=None, metavar="NAME", help="Slurm's partition. [default: Slurm's own default]")
@click.argument("arguments", nargs=-1, metavar="[-- OPTIONS OF RUN]")
def launch(
    *,
    scheduler: str,
    nodes: int,
    gpus_per_node: int | None,
    time: str,
    partition: str | None,
    arguments: tuple[str, ...],
) -> None:
    """Print the job script that starts a run inside a scheduler, for sbatch."""
    from .cluster.job_script import slurm_script

    click.echo(
        slurm_script(nodes=nodes, gpus_per_node=gpus_per_node, time=time, partition=partition, run=arguments), nl=False
    )


@cli.command()
@click.argument("path", metavar="RUN", type=RUN)
@click.option(
    "--format",
    "form",
    type=click.Choice(["csv", "junit"]),
    required=True,
    help="csv: every measurement; junit: the verdict's checks, for a CI system.",
)
@click.option("-o", "--output", type=FILE, default=None, help="Where to write. [default: stdout]")
def export(path: Path, form: Literal["csv", "junit"], output: Path | None) -> None:
    """Write a run's measurements or checks in another form."""
    with _one_line_errors():
        from .evidence import read_run
        from .reports.exports import exported

        text = exported(read_run(path), form)
        if output is None:
            click.echo(text, nl=False)
        else:
            _write(output, text, inside=path)


def _judge(path: Path, policy: str | None, *, as_json: bool, with_report: bool) -> NoReturn:
    """Score a run, show the verdict, and exit with it."""
    with _one_line_errors():
        from .evidence import read_run
        from .reports.terminal import show
        from .scoring import load_policy, score_run, verdict_json

        found = read_run(path)
        chosen: Policy | None = load_policy(policy) if policy else None
        verdict = score_run(found, chosen)
        if chosen is None:
            _write_derived(path / "verdict.json", verdict_json(verdict))
        console = _console(as_json)
        show(verdict, found, console)
        if with_report:
            console.print(f"report: {_write_page(found, verdict, path / 'report.html')}", markup=False, soft_wrap=True)
        if as_json:
            with contextlib.suppress(BrokenPipeError):
                sys.stdout.write(verdict_json(verdict).decode())
        sys.exit(verdict.exit_code)


def _write_page(found: "Run", verdict: "Verdict", place: Path) -> Path:
    from .reports.page import render

    _write(place, render(found, verdict), inside=found.path)
    return place


def _write(place: Path, text: str, *, inside: Path) -> None:
    """Write what is derived; an error names it. In a run directory, which may be another's, a link that stands in the
    way is replaced and never followed; elsewhere the user's own links are."""
    from .evidence.writing import replace_file

    try:
        if place.parent == inside:
            replace_file(place, text.encode())
        else:
            place.write_text(text, encoding="utf-8")
    except OSError as error:
        raise OSError(error.errno, f"{error.strerror}: the page or table was not written", str(place)) from error


def _write_derived(place: Path, content: bytes) -> None:
    """Derived files can be made again: a run directory that may not be written is judged all the same."""
    from .evidence.writing import replace_file

    try:
        replace_file(place, content)
    except OSError as error:
        click.echo(f"note: {place} not written: {error.strerror}", err=True)


def _console(as_json: bool) -> "Console":
    """Where people read: stdout, or stderr where a script reads stdout."""
    from rich.console import Console

    class Patient(Console):
        def on_broken_pipe(self) -> None:
            """Whoever read has left: rich would exit with 1 here, in the middle of a run."""
            self.quiet = True

    return Patient(stderr=as_json, highlight=False)


@contextlib.contextmanager
def _one_line_errors() -> Iterator[None]:
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
        from .evidence import HwlotteryError

        if not isinstance(error, HwlotteryError):
            raise
        _say_and_exit(str(error), error.exit_code)


def _say_and_exit(message: str, code: int) -> NoReturn:
    """One line on stderr, whatever the message holds: control characters in it could drive a terminal."""
    click.echo("hwlottery: " + " ".join("".join(c if c.isprintable() else " " for c in message).split()), err=True)
    sys.exit(code)


def _speakable(stream: TextIO | None) -> TextIO:
    """A stream that takes any text: a closed one swallows it, one of a small character set replaces what it lacks."""
    if stream is None:
        return Path(os.devnull).open("w")  # open until the process ends
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="replace")
    return stream


def main() -> NoReturn:
    """Run the command and end. Not by returning: a rank stuck in the kernel would block Python's exit."""
    sys.stdout, sys.stderr = (_speakable(stream) for stream in (sys.stdout, sys.stderr))
    try:
        cli(prog_name="hwlottery")
        code: object = 0
    except SystemExit as end:
        code = end.code
    with contextlib.suppress(OSError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code if isinstance(code, int) else 1)
