"""Rank functions that misbehave on purpose, each in one way that real ranks have been seen to."""

import ctypes
import os
import signal
import time
from pathlib import Path

from hwlottery.evidence import reading


def work(context, params):
    """What every rank does: tell its process; in a collective trial also add up over the ranks."""
    total = 1.0
    if params.get("collective"):
        import torch
        import torch.distributed as dist

        ones = torch.ones(4)
        dist.all_reduce(ones)
        total = float(ones[0])
    return [reading("matmul.tflops", context.subject, total, pid=os.getpid(), flag=os.environ.get("DRILL_FLAG", ""))]


def interface(context, params):
    """Tell on which interface this rank meets its peers."""
    found = os.environ.get("GLOO_SOCKET_IFNAME", "")
    return [reading("matmul.tflops", context.subject, 1.0, interface=found)]


def misbehave(context, params):
    """Do what `how` says on rank `on`; the others work as usual."""
    if "say" in params:
        print(params["say"])
    if context.rank == params.get("on", 0):
        _WAYS[params["how"]](params)
    return work(context, params)


def _hold_gil(_):
    ctypes.PyDLL(None).sleep(600)  # PyDLL keeps the GIL during the call


def _write_to(params):
    with Path(params["file"]).open("wb") as opened:
        opened.write(b"x" * 4096)
        os.fsync(opened.fileno())


def _raise(_):
    raise RuntimeError("the\nrank raised")


_WAYS = {
    "hang": lambda _: time.sleep(600),
    "hold_gil": _hold_gil,
    "stop": lambda _: os.kill(os.getpid(), signal.SIGSTOP),
    "kill": lambda _: os.kill(os.getpid(), signal.SIGKILL),
    "exit": lambda _: os._exit(7),
    "raise": _raise,
    "write": _write_to,
}
