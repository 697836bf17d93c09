"""What the head asks of a node, as functions that run in the node's worker."""

import asyncio
import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from .node import NodeKeeper, one_line
from .orders import Part, PartResult, Prepared

_MOST_AT_ONCE = 32  # a rank of its own each, and a few questions beside them

_keeper: NodeKeeper | None = None
_threads = ThreadPoolExecutor(max_workers=_MOST_AT_ONCE, thread_name_prefix="task")


def install(keeper: NodeKeeper) -> None:
    """Make this process the worker of that node."""
    global _keeper  # noqa: PLW0603  # a process is one node's worker for its whole life
    _keeper = keeper


def here() -> NodeKeeper:
    """This node's keeper, for the tasks below and for those of the runner."""
    assert _keeper is not None
    return _keeper


async def answer(function: Callable[..., Any], *args: Any) -> bytes:
    """Run a function in a thread, so that the worker answers others meanwhile: what it returned or raised, pickled."""
    return await asyncio.get_running_loop().run_in_executor(_threads, _answer, function, args)


def _answer(function: Callable[..., Any], args: tuple[Any, ...]) -> bytes:
    try:
        return pickle.dumps((True, function(*args)))
    except Exception as error:  # noqa: BLE001  # whatever it is, the head is to know
        try:
            return pickle.dumps((False, error))
        except Exception:  # noqa: BLE001  # not every exception can be pickled
            return pickle.dumps((False, RuntimeError(one_line(error))))


def prepare_here(subjects: tuple[str, ...], env: tuple[tuple[str, str], ...], leader: str | None) -> Prepared:
    """Task: NodeKeeper.prepare on the node that runs it."""
    return here().prepare(subjects, env, leader)


def died_idle_here() -> tuple[str, ...]:
    """Task: NodeKeeper.died_idle on the node that runs it."""
    return here().died_idle()


def perform_here(part: Part) -> PartResult:
    """Task: NodeKeeper.perform on the node that runs it."""
    return here().perform(part)


def abort_here(trial: str) -> None:
    """Task: NodeKeeper.abort on the node that runs it."""
    here().abort(trial)
