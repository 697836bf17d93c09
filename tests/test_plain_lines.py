"""Where progress is lines and not a moving display, though there seems to be a terminal."""

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

PATHS = {"PYTHONPATH": str(Path(__file__).resolve().parent.parent / ".src"), "PATH": os.environ["PATH"]}
SHOW = """
from hwlottery.commands.screen import console
from hwlottery.runner.live import Live
from hwlottery.runner.progress import Progress
import sys, time
with Live(console(False, plain=sys.argv[1:] == ["plain"])) as show:
    show(Progress(probe="matmul", probe_number=1, probes=2, ranks=1, ranks_busy=1, nodes=1, nodes_here=1))
    time.sleep(0.7)
"""


def on_a_terminal(env: dict[str, str], *words: str) -> str:
    """What a process prints to a pseudo-terminal."""
    here, there = pty.openpty()
    given = {**PATHS, "TERM": "xterm", **env}
    subprocess.run([sys.executable, "-c", SHOW, *words], stdout=there, stderr=there, env=given, check=True)
    os.close(there)
    content = b""
    try:
        while got := os.read(here, 4096):
            content += got
    except OSError:  # EIO: all was read, and nobody holds the other end
        pass
    os.close(here)
    return content.decode()


def test_on_a_terminal_the_display_moves():
    assert "\x1b[" in on_a_terminal({})


MPIRUN = {"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "1"}


@pytest.mark.parametrize(
    ("env", "words"),
    [(MPIRUN, ()), ({"PMI_RANK": "0"}, ()), ({"PMIX_RANK": "0"}, ()), ({"TERM": "dumb"}, ()), ({}, ("plain",))],
)
def test_under_mpirun_and_where_it_is_asked_for_there_are_lines_alone(env, words):
    said = on_a_terminal(env, *words)
    assert "\x1b" not in said
    assert "[1/2] matmul" in said


def test_under_mpirun_it_can_be_forced():
    assert "\x1b[" in on_a_terminal({**MPIRUN, "FORCE_COLOR": "1"})


def test_without_colours_the_display_moves_and_has_none():
    said = on_a_terminal({"NO_COLOR": "1"})
    assert "\x1b[" in said
    assert "\x1b[3" not in said
