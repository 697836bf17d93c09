"""Scoring and the page as a cluster grows: generated runs of 8, 64 and 512 nodes of 8 GPUs, with a day of telemetry.

What grows is compared in CPU time: it means the same on a busy machine. So is what a page costs Chromium: the time of
its main thread until the first frame after loading, when it answers.
"""

import dataclasses
import shutil
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
Path(sys.argv[2]).write_text(page)
print(json.dumps(dict(measurements=len(run.measurements), score_s=scored - start, page_s=shown - scored,
                      page_mb=len(page.encode()) / 1e6, scoring_gb=scoring_gb,
                      memory_gb=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6)))
"""


_SHAPES = (1024, 2048, 4096, 6144, 12288, 16384, 20480)  # with these 512 nodes bring over 400,000 measurements
_SIZES = (8, 64, 512)
_ACCELERATORS = 8
_MINUTES = 24 * 60
_PARTS = 8  # of a node's day: closed at the end of each probe
_LEAST = {"measurements": 400_000, "rows": 5_898_240}  # of 512 nodes: what the budgets are of
_BROWSER = ("--headless", "--no-sandbox", "--disable-gpu")
_NEXT_FRAME = "() => new Promise(done => requestAnimationFrame(() => setTimeout(done, 0)))"


class _Scored(msgspec.Struct):
    measurements: int
    score_s: float
    scoring_gb: float
    page_s: float
    page_mb: float
    memory_gb: float
    rows: int = 0
    browser_s: float | None = None


def budgets() -> list[Budget]:
    """CPU seconds and memory to read and judge, and the page's cost and size; the first rows show how scoring grows."""
    sizes = {nodes: _scored(nodes) for nodes in _SIZES}
    few, many = sizes[64], sizes[512]
    if many.measurements < _LEAST["measurements"] or many.rows < _LEAST["rows"]:
        raise RuntimeError(f"too small a run: {many.measurements:,} measurements, {many.rows:,} rows of telemetry")
    return [
        *[(f"scoring {nodes} x 8, {s.measurements:,} measurements, {s.rows:,} rows of telemetry", s.score_s, 10, "s")
          for nodes, s in sizes.items()],
        ("scoring 64 nodes over 8 nodes (8 is linear)", few.score_s / sizes[8].score_s, 10, "times"),
        ("scoring 512 nodes over 64 nodes (8 is linear)", many.score_s / few.score_s, 10, "times"),
        ("memory of scoring 512 nodes", many.scoring_gb, 2, "GB"),
        ("memory of scoring and showing 512 nodes", many.memory_gb, 2, "GB"),
        ("making the page of 512 nodes, CPU time", many.page_s, 20, "s"),
        ("the page of 64 nodes", few.page_mb, 1.5, "MB"),
        ("the page of 512 nodes", many.page_mb, 5, "MB"),
        *_in_browser(few, many),
    ]  # fmt: skip


def _in_browser(few: _Scored, many: _Scored) -> list[Budget]:
    if few.browser_s is None or many.browser_s is None:
        sys.stderr.write("no Chromium: what the page costs it is not measured (apt-get install chromium)\n")
        return []
    return [
        ("the page of 64 nodes in Chromium, until it answers", few.browser_s, 1, "s"),
        ("the page of 512 nodes in Chromium, until it answers", many.browser_s, 2, "s"),
    ]


def _scored(nodes: int) -> _Scored:
    sys.path.insert(0, str(_ROOT / "tests"))
    from generated_runs import H100, write_run  # type: ignore[import-not-found]  # the tests' generator

    with tempfile.TemporaryDirectory() as folder:
        chip = dataclasses.replace(H100, more_shapes=_SHAPES)
        run = write_run(Path(folder) / "run", nodes=nodes, accelerators=_ACCELERATORS, chip=chip)
        rows = sum(_write_telemetry(run / "telemetry" / f"n{index:02d}") for index in range(nodes))
        write_checksums(run)
        page = Path(folder) / "report.html"
        program = _PROGRAM.format(root=str(_ROOT / ".src"))
        printed = subprocess.run(
            [sys.executable, "-c", program, str(run), str(page)], capture_output=True, text=True, check=True
        ).stdout
        scored = msgspec.json.decode(printed, type=_Scored)
        return msgspec.structs.replace(scored, rows=rows, browser_s=_until_it_answers(page))


def _until_it_answers(page: Path) -> float | None:
    """CPU seconds of Chromium's main thread until the first frame after loading; None where there is no Chromium."""
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if chromium is None:
        return None
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=[*_BROWSER])
        shown = browser.new_page(viewport={"width": 1280, "height": 800})
        asked = shown.context.new_cdp_session(shown)
        asked.send("Performance.enable", {"timeDomain": "threadTicks"})
        shown.goto(page.as_uri())
        shown.evaluate(_NEXT_FRAME)
        metrics = {one["name"]: one["value"] for one in asked.send("Performance.getMetrics")["metrics"]}
        browser.close()
    return float(metrics["ThreadTime"])


def _write_telemetry(folder: Path) -> int:
    """A day of one node: a window a minute and GPU, as the sensors keep them. How many rows that is."""
    folder.mkdir()
    start = np.datetime64(datetime(2026, 11, 28, tzinfo=UTC).replace(tzinfo=None), "us")
    for part, minutes in enumerate(np.array_split(np.arange(_MINUTES), _PARTS)):
        rows = len(minutes) * _ACCELERATORS
        gpus = [f"{folder.name}/gpu{index}" for index in range(_ACCELERATORS)] * len(minutes)
        after = np.repeat(minutes, _ACCELERATORS)
        mean = 60 + 5 * np.sin(np.arange(rows))
        columns = {
            "node": pa.array([folder.name] * rows),
            "subject": pa.array(gpus),
            "quantity": pa.array(["temperature"] * rows),
            "minute": pa.array(start + after.astype("timedelta64[m]"), pa.timestamp("us", tz="UTC")),
            "minimum": mean - 2,
            "mean": mean,
            "maximum": mean + 2,
            "count": np.full(rows, 60),
            "bits": np.zeros(rows, dtype=np.int64),
        }
        pq.write_table(pa.table(columns), folder / f"{part:04d}.parquet", compression="zstd")
    return _MINUTES * _ACCELERATORS
