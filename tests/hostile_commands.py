"""Runs commands of hwlottery on what may be hostile, each in a child of its own, and tells what it did.

    python tests/hostile_commands.py  < requests  > answers

A request is a line of JSON: {"argv": [...], "cwd": ..., "out": a folder for what it prints}. The answer is one as well:
exit code, peak of resident memory, and what an audit hook saw: processes started, sockets used, files written, names
looked up for a pickle. One warm process serves many commands, for the imports cost more than most of them.
"""

import importlib
import json
import os
import resource
import sys
import traceback
from pathlib import Path

MOST_DATA = 4 * 2**30  # not of addresses: the engine that draws charts reserves many more than it uses
CPU_SECONDS = 120
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_EVER = {"os.system", "os.exec", "os.posix_spawn", "os.spawn", "subprocess.Popen", "pickle.find_class", "os.fork"}
_NET = {"socket.connect", "socket.bind", "socket.getaddrinfo", "socket.sendto", "urllib.Request"}
_CHANGES = {
    "os.remove",
    "os.rename",
    "os.mkdir",
    "os.rmdir",
    "os.link",
    "os.symlink",
    "os.chmod",
    "os.chown",
    "os.truncate",
}
WARM = (
    "hwlottery.cli", "hwlottery.evidence", "hwlottery.scoring", "hwlottery.reports.page", "hwlottery.reports.exports",
    "hwlottery.reports.terminal", "hwlottery.reports.problems", "hwlottery.reports.annex",
    "hwlottery.reports.history_page", "pyarrow.parquet", "pyarrow.compute", "hwlottery.probes.profiles",
    "hwlottery.runner.command",
)  # fmt: skip


def serve() -> None:
    for name in WARM:
        importlib.import_module(name)
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        print(json.dumps(_answer(json.loads(line))), flush=True)


def _answer(request: dict) -> dict:
    out = Path(request["out"])
    child = os.fork()
    if child == 0:
        try:
            _run(request, out)
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(70)
    _, status, used = os.wait4(child, 0)
    seen = [json.loads(line) for line in (out / "seen").read_text().splitlines()]
    return {"code": os.waitstatus_to_exitcode(status), "peak_mb": used.ru_maxrss / 1024, "seen": seen}


def _run(request: dict, out: Path) -> None:
    os.chdir(request["cwd"])
    for number, name in ((0, os.devnull), (1, out / "stdout"), (2, out / "stderr")):
        os.dup2(os.open(name, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600), number)
    log = os.open(out / "seen", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    resource.setrlimit(resource.RLIMIT_DATA, (MOST_DATA, MOST_DATA))
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS + 5))
    sys.argv = ["hwlottery", *request["argv"]]

    def watch(event: str, arguments: tuple) -> None:
        if event == "open" and not (isinstance(arguments[2], int) and arguments[2] & _WRITES):
            return
        if event in _EVER or event in _NET or event in _CHANGES or event == "open":
            shown = [os.fsdecode(one) if isinstance(one, str | bytes) else repr(one)[:200] for one in arguments[:2]]
            os.write(log, json.dumps([event, *shown]).encode() + b"\n")

    sys.addaudithook(watch)
    from hwlottery.cli import main

    main()


if __name__ == "__main__":
    serve()
