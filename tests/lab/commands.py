"""`hwlottery run` on a lab's hosts, as a user starts it, and what it leaves: the run read back, and its verdict."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from hwlottery.evidence import Run, read_run
from hwlottery.scoring import load_policy

from .lab import ROOT, Lab

PROFILES = Path(__file__).resolve().parents[1] / "profiles"
VERDICTS = (0, 3, 4, 5)
WORKER = "hwlottery.cluster.node_main"
# What smoke demands of the profile pairs.
PAIRS = (
    *("evidence.complete", "node.responds", "clock.agrees"),
    *("pairs.nodes", "pairs.links", "pairs.stalls", "pairs.exact"),
)
Verdict = dict[str, Any]


def policy_of(folder: Path, checks: Iterable[str] = PAIRS) -> Path:
    """A policy file with these checks of smoke, as they stand there, and no other."""
    left_out = [check.check for check in load_policy("smoke").checks if check.check not in {*checks}]
    file = folder / "policy.yaml"
    file.write_text(f"name: some\nextends: smoke\nleave_out: {json.dumps(left_out)}\n")
    return file


def arguments(out: Path, *more: object, profile: str = "tiny", policy: object = "prolog") -> list[str]:
    """The arguments of a new run below /tmp of each host."""
    given = ["--profile", PROFILES / f"{profile}.yaml", "--policy", policy, "--scratch", "/tmp", "--out", out]
    return ["run", *map(str, given), *map(str, more)]


def hwlottery(lab: Lab, *given: object, module: str = "hwlottery") -> "subprocess.CompletedProcess[str]":
    """Run the command on the lab's head until it ends."""
    return subprocess.run(
        [sys.executable, "-m", module, *map(str, given)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": f"{ROOT / '.src'}:{ROOT / 'tests'}", "HWLOTTERY_SSH": lab.ssh},
        timeout=200,
        check=False,
    )


def run_on(
    lab: Lab, out: Path, hosts: str, *more: object, module: str = "hwlottery", **kinds: Any
) -> tuple[Run, Verdict, "subprocess.CompletedProcess[str]"]:
    """Run over ssh to a verdict; the run read back, its verdict, and what was printed."""
    result = hwlottery(lab, *arguments(out, "--hosts", hosts, *more, **kinds), module=module)
    assert result.returncode in VERDICTS, result.stdout + result.stderr
    return *read(out), result


def read(out: Path) -> tuple[Run, Verdict]:
    """A run without a gap, and its verdict."""
    run = read_run(out)
    assert run.problems == []
    return run, json.loads((out / "verdict.json").read_text())


def events(run: Run, kind: str) -> dict[str, str]:
    """What events of a kind say, by subject."""
    return {event.subject: event.detail for event in run.events if event.kind == kind}


def found(verdict: Verdict, *results: str, check: str = "") -> set[str]:
    """The subjects that have one of these results, in one check or in any."""
    findings = (f for f in verdict["findings"] if check in ("", f["check"]))
    return {f["subject"] for f in findings if f["result"] in results}


def slurm_script(given: list[str], nodes: int) -> str:
    """The batch script for a run with these arguments, as `hwlottery launch slurm` prints it."""
    words = ["launch", "slurm", "--nodes", str(nodes), "--time", "5", "--", *given[1:]]
    done = subprocess.run(
        [sys.executable, "-m", "hwlottery", *words], capture_output=True, text=True, check=True, timeout=60
    )
    return done.stdout


def submit(lab: Lab, env: dict[str, str], script: str) -> str:
    """Submit a script to the lab's Slurm and wait for its job; what it printed."""
    output = lab.folder / f"out-{time.monotonic_ns()}"
    words = ["sbatch", "--wait", f"--output={output}", "--chdir=/tmp"]
    env = {**env, "PYTHONPATH": f"{ROOT / '.src'}:{ROOT / 'tests'}"}
    subprocess.run(words, input=script, text=True, env=env, capture_output=True, timeout=150, check=False)
    return output.read_text()


def left_on(lab: Lab) -> dict[str, list[int]]:
    """Processes of ours on any host."""
    return {name: host.processes("hwlottery|multiprocessing") for name, host in lab.hosts.items()}
