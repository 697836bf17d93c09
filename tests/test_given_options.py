"""Whatever is given to any option of any command: a number that is none, a pipe or a device for a file."""

import os
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from odd_files import bound_socket

from hwlottery.cli import cli
from hwlottery.cluster.identity import IDENTITY_FILE, take_identity
from hwlottery.commands.arguments import ACCELERATORS, NODES
from hwlottery.evidence import RunError
from hwlottery.evidence.header import MOST_NODES, MOST_RANKS

NO_NUMBERS = ("inf", "-inf", "nan", "1e308", "-1e308", "-1", "9" * 50, "9" * 5000, "", "x", "0x1")


def parameters(command: click.Command, path: str = "") -> list[tuple[str, click.Command, click.Parameter]]:
    below = command.commands.items() if isinstance(command, click.Group) else ()
    own = [(f"{path}{one.opts[0]}", command, one) for one in command.params]
    return own + [found for name, each in below for found in parameters(each, f"{path}{name} ")]


NUMERIC = (click.types.IntParamType, click.types.FloatParamType)
NUMBERS = [found for found in parameters(cli) if isinstance(found[2].type, NUMERIC)]


def test_there_are_options_that_take_numbers():
    assert {"run --price", "launch kubernetes --hours", "history --days", "run --seed"} <= {
        name for name, *_ in NUMBERS
    }


@pytest.mark.parametrize(("name", "command", "option"), NUMBERS, ids=[name for name, *_ in NUMBERS])
def test_every_option_that_takes_a_number_has_bounds_and_refuses_what_is_none(name, command, option):
    assert option.type.min is not None
    assert option.type.max is not None
    context = click.Context(command)
    for text in NO_NUMBERS:
        with pytest.raises(click.BadParameter):
            option.process_value(context, text)


def test_options_allow_as_many_as_a_run_may_have():
    assert (NODES.max, ACCELERATORS.max) == (MOST_NODES, MOST_RANKS)


@pytest.mark.parametrize("given", [["--python", "3." + "9" * 30], ["--platform", "manylinux_2_999999999_x86_64"]])
def test_a_bundle_for_no_python_and_no_platform_is_refused(given, tmp_path):
    done = CliRunner().invoke(cli, ["bundle", "-o", str(tmp_path / "b.pyz"), *given], catch_exceptions=False)
    assert done.exit_code == 2
    assert done.output.count("\n") == 1


def pipe(place: Path) -> Path:
    os.mkfifo(place, 0o600)
    return place


def folder(place: Path) -> Path:
    place.mkdir()
    return place


NO_FILES = {
    "a pipe": pipe,
    "a device without end": lambda _: Path("/dev/zero"),
    "a device without content": lambda _: Path("/dev/null"),
    "a socket": bound_socket,
    "a folder": folder,
}
DRY = ("run", "--dry-run")
# Each option that names a file to read, with what else its command needs.
READ = {
    "run --profile": (*DRY, "--profile", "FILE"),
    "run --policy": (*DRY, "--policy", "FILE"),
    "run --references": (*DRY, "--references", "FILE"),
    "run --costs": (*DRY, "--costs", "FILE"),
    "run --sign": (*DRY, "--sign", "FILE"),
    "run --bundle": ("run", "--hosts", "localhost", "--bundle", "FILE"),
    "run --resume": ("run", "--resume", "FILE"),
    "run --join": ("run", "--hosts", "n1", "--join", "FILE"),
    "recheck --baseline": ("recheck", "--dry-run", "--baseline", "FILE"),
    "score --policy": ("score", "RUN", "--policy", "FILE"),
    "score --references": ("score", "RUN", "--references", "FILE"),
    "score --costs": ("score", "RUN", "--costs", "FILE"),
    "score --baseline": ("score", "RUN", "--baseline", "FILE"),
    "score --provider-record": ("score", "RUN", "--provider-record", "FILE"),
    "report --provider-record": ("report", "RUN", "--provider-record", "FILE"),
    "report --references": ("report", "RUN", "--references", "FILE"),
    "report --costs": ("report", "RUN", "--costs", "FILE"),
    "compare --references": ("compare", "RUN", "RUN", "--references", "FILE"),
    "compare --history": ("compare", "RUN", "RUN", "--history", "FILE"),
    "sign --key": ("sign", "RUN", "--key", "FILE"),
    "verify --allowed-signers": ("verify", "RUN", "--allowed-signers", "FILE"),
    "verify --signer": ("verify", "RUN", "--signer", "FILE"),
    "export --provider-record": ("export", "RUN", "--format", "claim", "--provider-record", "FILE"),
    "explain --references": ("explain", "H100", "--references", "FILE"),
    "annex --policy": ("annex", "--policy", "FILE"),
    "doctor --bundle": ("doctor", "--hosts", "localhost", "--bundle", "FILE"),
    "launch slurm --bundle": ("launch", "slurm", "--nodes", "2", "--bundle", "FILE"),
    "launch slurm -- --profile": ("launch", "slurm", "--nodes", "2", "--", "--profile", "FILE"),
    "launch slurm -- --costs": ("launch", "slurm", "--nodes", "2", "--", "--costs", "FILE"),
    "history": ("history", "FILE"),
    "score": ("score", "FILE"),
}
# Written to, to folders, or not a file of ours.
NOT_READ = {"--output", "-o", "--junit", "--prometheus", "--scratch", "--keep-checkpoint", "--out", "--key", "RUN"}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    from generated_runs import write_run

    return write_run(tmp_path_factory.mktemp("there") / "run", nodes=2, accelerators=1)


def test_every_option_that_reads_a_file_is_in_the_table():
    of_files = {name for name, _, one in parameters(cli) if isinstance(one.type, click.Path)}
    wanted = {name for name in of_files if name.rpartition(" ")[2].startswith("--")}
    wanted = {name for name in wanted if name.rpartition(" ")[2] not in NOT_READ}
    same_as_run = {name for name in wanted if name.startswith("recheck ") and name != "recheck --baseline"}
    assert wanted - same_as_run <= set(READ)


@pytest.mark.timeout(120)
@pytest.mark.parametrize("kind", NO_FILES)
@pytest.mark.parametrize("option", READ)
def test_what_is_no_file_is_refused_at_once_and_not_read(option, kind, run, tmp_path):
    if kind == "a folder" and option in ("compare --history", "history"):
        return
    place = NO_FILES[kind](tmp_path / "given.yaml")
    filled = [str(place) if one == "FILE" else str(run) if one == "RUN" else one for one in READ[option]]
    done = CliRunner().invoke(cli, filled, catch_exceptions=False)
    assert done.exit_code == 2, done.output
    said = [line for line in done.stderr.splitlines() if line]
    assert len(said) == 1 or said[-1].startswith("Error: "), done.stderr


@pytest.mark.timeout(60)
@pytest.mark.parametrize("kind", NO_FILES)
def test_an_identity_that_is_no_file_is_refused_at_once(kind, tmp_path):
    place = NO_FILES[kind](tmp_path / "given")
    if not str(place).startswith("/dev"):
        place.chmod(0o600)
    with pytest.raises(RunError, match=r"no plain file|may be read by others"):
        take_identity({IDENTITY_FILE: str(place)})


def test_an_identity_behind_a_link_is_read_as_a_secrets_file_is_one(tmp_path):
    (tmp_path / "there").write_text("no identity")
    (tmp_path / "there").chmod(0o600)
    (tmp_path / "link").symlink_to("there")
    with pytest.raises(RunError, match="holds no identity"):
        take_identity({IDENTITY_FILE: str(tmp_path / "link")})
