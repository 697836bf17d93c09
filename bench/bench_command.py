"""How long the command takes, from the shell's prompt to the end."""

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

Budget = tuple[str, float, float, str]


def budgets() -> list[Budget]:
    """--help, and the two profiles that a single machine is asked for often."""
    return [
        ("hwlottery --help", statistics.median(_seconds("--help") for _ in range(7)), 0.2, "s"),
        ("prolog profile on this machine, spawn to report", _run("prolog"), 10, "s"),
        ("smoke profile on this machine, spawn to report", _run("smoke"), 90, "s"),
    ]


def _seconds(*arguments: str) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, "-m", "hwlottery", *arguments], capture_output=True, check=False)
    return time.perf_counter() - start


def _run(profile: str) -> float:
    with tempfile.TemporaryDirectory() as folder:
        return _seconds("run", "--profile", profile, "--out", str(Path(folder) / "run"), "--scratch", folder)
