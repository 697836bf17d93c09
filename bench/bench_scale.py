"""Scoring and the page as a cluster grows: generated runs of 8, 64 and 512 nodes of 8 GPUs, with a day of telemetry.

What grows is compared in CPU time: it means the same on a busy machine.
"""

import dataclasses
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from hwlottery.evidence.writing import write_checksums

Budget = tuple[str, float, float, str]
_ROOT = Path(__file__).parent.parent
_PROGRAM = """
import json, resource, sys, time
from pathlib import Path
sys.path.insert(0, {root!r})
from hwlottery.evidence import read_run
from hwlottery.reports.page import render
from hwlottery.scoring import score_run
start = time.process_time()
run = read_run(Path(sys.argv[1]))
verdict = score_run(run)
scored = time.process_time()
scoring_gb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
page = render(run, verdict)
shown = time.process_time()
print(json.dumps(dict(measurements=len(run.measurements), score_s=scored - start, page_s=shown - scored,
                      page_mb=len(page.encode()) / 1e6, scoring_gb=scoring_gb,
                      memory_gb=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6)))
"""


_SHAPES = (1024, 2048, 4096, 6144, 12288, 16384, 20480)  # with these 512 nodes bring 409,000 measurements
_MINUTES = 24 * 60
_PARTS = 8  # of a node's day: closed at the end of each probe


class _Scored(msgspec.Struct):
    measurements: int
    score_s: float
    scoring_gb: float
    page_s: float
    page_mb: float
    memory_gb: float


def budgets() -> list[Budget]:
    """CPU seconds and memory to read and judge, and the page's size; the first rows show how scoring grows."""
    sizes = {nodes: _scored(nodes) for nodes in (8, 64, 512)}
    grown = sizes[512].score_s / sizes[64].score_s
    return [
        *[(f"scoring {nodes} x 8, {s.measurements:,} measurements", s.score_s, 10, "s") for nodes, s in sizes.items()],
        ("scoring 512 nodes over 64 nodes (8 is linear)", grown, 10, "times"),
        ("memory of scoring 512 nodes", sizes[512].scoring_gb, 2, "GB"),
        ("memory of scoring and showing 512 nodes", sizes[512].memory_gb, 2, "GB"),
        ("the page of 512 nodes, CPU time", sizes[512].page_s, 30, "s"),
        ("the page of 64 nodes", sizes[64].page_mb, 1.5, "MB"),
        ("the page of 512 nodes", sizes[512].page_mb, 5, "MB"),
    ]


def _scored(nodes: int) -> _Scored:
    sys.path.insert(0, str(_ROOT / "tests"))
    from generated_runs import H100, write_run  # type: ignore[import-not-found]  # the tests' generator

    with tempfile.TemporaryDirectory() as folder:
        chip = dataclasses.replace(H100, more_shapes=_SHAPES)
        run = write_run(Path(folder) / "run", nodes=nodes, accelerators=8, chip=chip)
        for index in range(nodes):
            _write_telemetry(run / "telemetry" / f"n{index:02d}")
        write_checksums(run)
        program = _PROGRAM.format(root=str(_ROOT / ".src"))
        printed = subprocess.run(
            [sys.executable, "-c", program, str(run)], capture_output=True, text=True, check=True
        ).stdout
    return msgspec.json.decode(printed, type=_Scored)


def _write_telemetry(folder: Path) -> None:
    """A day of one node: a window a minute and GPU, as the sensors keep them."""
    folder.mkdir()
    start = np.datetime64(datetime(2026, 11, 28, tzinfo=UTC).replace(tzinfo=None), "us")
    for part, minutes in enumerate(np.array_split(np.arange(_MINUTES), _PARTS)):
        rows = len(minutes) * 8
        gpus = [f"{folder.name}/gpu{index}" for index in range(8)] * len(minutes)
        mean = 60 + 5 * np.sin(np.arange(rows))
        columns = {
            "node": pa.array([folder.name] * rows),
            "subject": pa.array(gpus),
            "quantity": pa.array(["temperature"] * rows),
            "minute": pa.array(start + np.repeat(minutes, 8).astype("timedelta64[m]"), pa.timestamp("us", tz="UTC")),
            "minimum": mean - 2,
            "mean": mean,
            "maximum": mean + 2,
            "count": np.full(rows, 60),
            "bits": np.zeros(rows, dtype=np.int64),
        }
        pq.write_table(pa.table(columns), folder / f"{part:04d}.parquet", compression="zstd")
