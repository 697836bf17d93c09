"""Scoring and the page as a cluster grows: generated runs of 8, 64 and 512 nodes."""

import subprocess
import sys
import tempfile
from pathlib import Path

import msgspec

Budget = tuple[str, float, float, str]
_ROOT = Path(__file__).parent.parent
_PROGRAM = """
import json, resource, sys, time
from pathlib import Path
sys.path.insert(0, {root!r})
from hwlottery.evidence import read_run
from hwlottery.reports.page import render
from hwlottery.scoring import score_run
start = time.perf_counter()
run = read_run(Path(sys.argv[1]))
verdict = score_run(run)
scored = time.perf_counter()
page = render(run, verdict)
shown = time.perf_counter()
print(json.dumps(dict(measurements=len(run.measurements), score_s=scored - start, page_s=shown - scored,
                      page_mb=len(page.encode()) / 1e6,
                      memory_gb=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6)))
"""


class _Scored(msgspec.Struct):
    measurements: int
    score_s: float
    page_s: float
    page_mb: float
    memory_gb: float


def budgets() -> list[Budget]:
    """Seconds and memory to read and judge, and the page's size; the first rows show how scoring grows."""
    sizes = {nodes: _scored(nodes) for nodes in (8, 64, 512)}
    grown = sizes[512].score_s / sizes[64].score_s
    return [
        *[(f"scoring {nodes} x 8, {s.measurements:,} measurements", s.score_s, 10, "s") for nodes, s in sizes.items()],
        ("scoring 512 nodes over 64 nodes (8 is linear)", grown, 10, "times"),
        ("memory of scoring and showing 512 nodes", sizes[512].memory_gb, 2, "GB"),
        ("the page of 64 nodes", sizes[64].page_mb, 1.5, "MB"),
        ("the page of 512 nodes", sizes[512].page_mb, 5, "MB"),
    ]


def _scored(nodes: int) -> _Scored:
    sys.path.insert(0, str(_ROOT / "tests"))
    from generated_runs import write_run  # type: ignore[import-not-found]  # the tests' generator, not of the package

    with tempfile.TemporaryDirectory() as folder:
        run = write_run(Path(folder) / "run", nodes=nodes, accelerators=8)
        program = _PROGRAM.format(root=str(_ROOT / ".src"))
        printed = subprocess.run(
            [sys.executable, "-c", program, str(run)], capture_output=True, text=True, check=True
        ).stdout
    return msgspec.json.decode(printed, type=_Scored)
