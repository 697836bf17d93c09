"""The command line, its help and the README say the same; and asking for help loads nothing heavy."""

import re
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from hwlottery.cli import cli

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text()
COMMANDS = sorted(cli.commands)


def commands(group, *above):
    """Every command that can be run, by its words: those within a group too."""
    for name, command in sorted(group.commands.items()):
        yield (*above, name), command
        if isinstance(command, click.Group):
            yield from commands(command, *above, name)


ALL = dict(commands(cli))


def options(command):
    return [parameter for parameter in command.params if isinstance(parameter, click.Option)]


@pytest.mark.parametrize("words", ALL, ids=" ".join)
def test_every_command_and_option_has_help(words):
    command = ALL[words]
    assert command.help
    for option in options(command):
        assert option.help, f"{words} {option.opts[-1]} has no help"


@pytest.mark.parametrize("words", ALL, ids=" ".join)
def test_every_command_shows_its_help(words):
    result = CliRunner().invoke(cli, [*words, "--help"])
    assert result.exit_code == 0
    assert result.output.startswith("Usage:")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("score", "nope"), "Invalid value for 'RUN': 'nope' does not exist: give the directory of a run"),
        (("score",), "Missing argument 'RUN'; see hwlottery score --help"),
        (("score", ".", "."), "Got unexpected extra argument"),
        (("run", "--price", "0"), "Invalid value for '--price': 0.0 is not in the range 0<x<=1000000.0; see"),
        (("run", "--price", "nan"), "Invalid value for '--price': not a number"),
        (("run", "--price", "many"), "Invalid value for '--price': 'many' is no number; see hwlottery run --help"),
        (("run", "--pric", "3"), "No such option"),
        (("annex",), "Missing option '--policy'"),
        (("annex", "--policy"), "Option '--policy' requires an argument; see hwlottery annex --help"),
        (("export", "."), "Missing option '--format'. Choose from: csv, junit, prometheus"),
        (("export", ".", "--format", "evil\x1b[2J\nnix"), "Invalid value for '--format'"),
        (("verify", ".", "--allowed-signers", "a", "--signer", "b"), "give --allowed-signers or --signer, not both"),
        (("scor", "x"), "No such command 'scor'"),
        (("launch", "nix"), "No such command 'nix'"),
        (("launch", "slurm"), "Missing option '--nodes'; see hwlottery launch slurm --help"),
        (("--foo",), "No such option"),
    ],
)  # fmt: skip
def test_a_usage_error_is_one_line_with_what_is_wrong_and_where_the_help_is(words, told):
    result = CliRunner().invoke(cli, words, prog_name="hwlottery")
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith("hwlottery: "), result.stderr
    assert told in result.stderr
    assert result.stderr.strip().isprintable()
    assert len(result.stderr.splitlines()) == 1
    assert "--help" in result.stderr


@pytest.mark.parametrize("words", [(), ("launch",)])
def test_a_group_without_a_command_shows_its_help(words):
    result = CliRunner().invoke(cli, words)
    assert "Commands:" in result.output


def test_the_readme_names_every_command_and_no_other():
    assert sorted(set(re.findall(r"\| `hwlottery (\w+)", README))) == COMMANDS


def test_every_option_that_the_readme_names_exists():
    known = {name for command in ALL.values() for option in options(command) for name in option.opts}
    known |= {"--help", "--index-url"}  # click's own, and pip's
    assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", README)) <= known


def test_the_readme_says_which_commands_speak_json():
    speak = [name for name in COMMANDS if any("--json" in option.opts for option in options(cli.commands[name]))]
    sentence = re.search(r"([^.]*) have `--json`", README.replace("\n", " "))
    assert sentence is not None
    assert sorted(re.findall(r"`(\w+)`", sentence[1])) == speak


def test_the_readme_and_the_help_give_the_exit_codes_of_the_code():
    from hwlottery.runner.run import RunCutShort, RunStopped
    from hwlottery.scoring import EXIT_CODES

    codes = {*EXIT_CODES.values(), RunCutShort.exit_code, RunStopped(Path(), 130).exit_code, 143, 129, 2}
    listed = {int(code) for row in re.findall(r"^\| ([\d, ]+) \|", README, re.MULTILINE) for code in row.split(",")}
    assert codes | {1} == listed
    help_text = CliRunner().invoke(cli, ["--help"]).output
    for code in codes:
        assert re.search(rf"\b{code}\b", help_text)


def test_the_readme_lists_every_probe_and_profile():
    from hwlottery.probes import PROBES
    from hwlottery.probes.profiles import profile_names

    for name in [probe.name for probe in PROBES]:
        assert f"\n| {name} |" in README
    for name in profile_names():
        assert f"`{name}`" in README


HEAVY = ("torch", "pandas", "dask", "distributed", "pydantic", "pyarrow", "scipy", "altair", "rich", "numpy", "yaml")


def loaded_by(code):
    program = f"import sys\n{code}\nprint(' '.join(name for name in {HEAVY!r} if name in sys.modules))"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return result.stdout.split()[-1:] if result.stdout.split() else []


def test_asking_for_help_loads_nothing_heavy():
    assert loaded_by("from hwlottery.cli import cli; cli.get_help(__import__('click').Context(cli))") == []


def test_judging_and_reporting_load_no_torch_and_no_control_plane():
    code = "import hwlottery.scoring, hwlottery.reports.page, hwlottery.reports.terminal"
    program = f"import sys\n{code}\nassert not {{'torch', 'distributed', 'dask', 'pebble'}} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_rank_function_needs_no_configuration_and_no_control_plane():
    code = "import hwlottery.probes, hwlottery.cluster"
    program = (
        f"import sys\n{code}\nassert not {{'pydantic', 'distributed', 'dask', 'pebble', 'click'}} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
