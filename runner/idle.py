"""Nodes that are idle in Slurm: which there are, and a step of our own on some of them, taken now or not at all.

Nothing waits in a queue: a pending job that names its nodes can make Slurm keep them free for it. The step is a
job of its own, that Slurm may preempt.
"""

import os
import secrets
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import msgspec

from ..cluster.identity import IDENTITY, new_identity
from ..evidence import HwlotteryError, RunError
from ..readers.sinfo import idle_nodes

_ASKING_S = 30.0
_STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_REFUSED = "Unable to allocate resources: "


class NodesTaken(HwlotteryError):
    """The nodes got a job before ours: nothing was measured."""

    exit_code = 4


@dataclass(frozen=True, kw_only=True, slots=True)
class Wanted:
    """The nodes of a step, and what else Slurm is told. `more` are the user's own words for srun."""

    nodes: tuple[str, ...]
    gpus_per_node: int | None
    partition: str | None
    time: str
    within_s: int
    more: tuple[str, ...]


def idle_in(partition: str | None) -> tuple[str, ...]:
    """The idle nodes of a partition, or of all. Raises RunError where Slurm does not say."""
    words = ["sinfo", "--noheader", "--Node", "--format=%N %t", *([f"--partition={partition}"] if partition else [])]
    try:
        asked = subprocess.run(words, capture_output=True, text=True, timeout=_ASKING_S, check=False)
    except FileNotFoundError:
        raise RunError("--idle asks Slurm, and sinfo is not here: run this where Slurm's commands are") from None
    except subprocess.TimeoutExpired:
        raise RunError(f"sinfo has not answered for {_ASKING_S:.0f} s") from None
    if asked.returncode:
        raise RunError(f"sinfo: {asked.stderr.strip() or f'ended with {asked.returncode}'}")
    return idle_nodes(asked.stdout)


def split(words: str | None) -> tuple[str, ...]:
    """The user's words for srun, as a shell splits them. Raises RunError for what it could not."""
    try:
        return tuple(shlex.split(words or ""))
    except ValueError as error:
        raise RunError(f"--srun {words}: {error}") from None


def step_words(wanted: Wanted, name: str, command: Sequence[str]) -> list[str]:
    """The srun that takes these nodes, or gives up. One process of ours a node, with all that it has; a node that dies
    ends neither the job nor the others, for that is what we want to know."""
    from ClusterShell.NodeSet import NodeSet

    given = {
        "job-name": name,
        "nodes": str(len(wanted.nodes)),
        "nodelist": str(NodeSet.fromlist(list(wanted.nodes))),
        "ntasks-per-node": "1",
        "time": wanted.time,
        "immediate": str(wanted.within_s),
        "nice": "100",
        "mem": "0",
        "cpu-bind": "none",
        "wait": "0",
        "kill-on-bad-exit": "0",
        **({"gpus-per-node": str(wanted.gpus_per_node)} if wanted.gpus_per_node else {}),
        **({"partition": wanted.partition} if wanted.partition else {}),
    }
    options = [f"--{option}={value}" for option, value in given.items()]
    ours = [sys.executable, "-m", "hwlottery", *command]
    return ["srun", *options, "--exclusive", "--no-kill", "--quiet", *wanted.more, *ours]


def run_step(wanted: Wanted, command: Sequence[str], say: Callable[[str], None]) -> int:
    """Run a command of ours once a node, and give the code that it ends with on the node that leads.

    A signal to this process cancels the job: Slurm then sends SIGTERM to ours, which leaves a valid run, where a signal
    to srun itself would kill it at once. Raises NodesTaken, or RunError for what Slurm refuses.
    """
    name = f"hwlottery-idle-{secrets.token_hex(4)}"
    env = {**os.environ, IDENTITY: msgspec.json.encode(new_identity()).decode()}
    with _cancelling(name), _started(step_words(wanted, name, command), env) as step:
        refused = _relay(step, say)
        code = step.wait()
    if refused:
        raise NodesTaken(f"Slurm: {refused}: nothing was measured") if "busy" in refused else RunError(refused)
    return code if code >= 0 else 128 - code


def _started(words: Sequence[str], env: dict[str, str]) -> "subprocess.Popen[str]":
    """Of a group of its own: Ctrl-C on the terminal comes to us alone."""
    quiet, piped = subprocess.DEVNULL, subprocess.PIPE
    try:
        return subprocess.Popen(
            words, env=env, stdin=quiet, stderr=piped, text=True, errors="replace", process_group=0
        )  # fmt: skip
    except FileNotFoundError:
        raise RunError("--idle starts a job of Slurm's, and srun is not here") from None


def _relay(step: "subprocess.Popen[str]", say: Callable[[str], None]) -> str:
    """Pass on what the step says, as it comes; why Slurm refused it, where it did."""
    refused = ""
    for line in step.stderr or ():
        _, found, why = line.partition(_REFUSED)
        refused = why.strip() if found else refused
        if not found:
            say(line)
    return refused


@contextmanager
def _cancelling(name: str) -> Iterator[None]:
    """While this lasts a signal cancels the job of this name, and the step's end is waited for."""

    def cancel(*_: Any) -> None:
        subprocess.run(["scancel", f"--name={name}"], capture_output=True, timeout=_ASKING_S, check=False)

    before = {one: signal.signal(one, cancel) for one in _STOPPING}
    try:
        yield
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)
