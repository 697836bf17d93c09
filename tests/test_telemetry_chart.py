"""The health chart from telemetry: drawn where it can be read, left out where it cannot."""

import re
import shutil
from datetime import timedelta
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from generated_runs import START, make_run, write_records

from hwlottery.evidence import Measurement, Run, read_run
from hwlottery.reports.layout import Part
from hwlottery.reports.measured import Measured
from hwlottery.reports.sections.health_over_time import over_time
from hwlottery.reports.telemetry import telemetry_chart


def test_telemetry_that_is_no_parquet_is_left_out(tmp_path: Path) -> None:
    part = tmp_path / "telemetry" / "n00" / "0001.parquet"
    part.parent.mkdir(parents=True)
    part.write_bytes(b"PAR1 cut off")
    assert telemetry_chart(tmp_path) is None


def test_telemetry_is_drawn_over_its_minutes(tmp_path: Path) -> None:
    import pyarrow
    import pyarrow.parquet

    folder = tmp_path / "telemetry" / "n00"
    folder.mkdir(parents=True)
    rows = [
        {"node": "n00", "subject": "n00/gpu0", "quantity": "temperature", "minute": minute, "minimum": 60.0,
         "mean": 65.0, "maximum": 70.0 + minute, "count": 60, "bits": 0}
        for minute in range(5)
    ]  # fmt: skip
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), folder / "0001.parquet")
    chart = telemetry_chart(tmp_path)
    assert chart is not None
    assert chart.title == "Highest temperature under load: 74 °C"


def day_of_gpus(place: Path, *, warm: str = "", minutes: int = 300, cold_after: int = 300) -> Run:
    """A run of four nodes of two GPUs that trained all the time, each read every minute."""
    header, records = make_run(nodes=4, accelerators=2, hours=minutes / 60)
    times = {"start": START + timedelta(minutes=10), "end": START + timedelta(minutes=minutes)}
    placed = [
        msgspec.structs.replace(each, **times)
        if isinstance(each, Measurement) and each.metric == "burn_in.step"
        else each
        for each in records
    ]
    run = write_records(place / "run", header, placed)
    for node in range(4):
        rows = [
            window(f"n{node:02d}", gpu, minute, 80.0 if f"n{node:02d}/gpu{gpu}" == warm else 65.0)
            for gpu in range(2)
            for minute in range(cold_after)
        ]
        folder = run / "telemetry" / f"n{node:02d}"
        folder.mkdir(parents=True)
        pq.write_table(pa.Table.from_pylist(rows), folder / "0000.parquet")
    return read_run(run)


def window(node: str, gpu: int, minute: int, degrees: float) -> dict[str, object]:
    return {
        "node": node,
        "subject": f"{node}/gpu{gpu}",
        "quantity": "temperature",
        "minute": START + timedelta(minutes=minute),
        "minimum": degrees - 1,
        "mean": degrees,
        "maximum": degrees + 1,
        "count": 60,
        "bits": 0,
    }


def heat(run: Run) -> Part:
    (part,) = over_time(Measured(run))
    return part


def test_a_gpu_that_stays_warm_is_the_message_of_the_heat_map_and_its_first_row(tmp_path: Path) -> None:
    part = heat(day_of_gpus(tmp_path, warm="n02/gpu1"))
    assert part.chart is not None
    assert part.chart.title == "n02/gpu1 is 15 °C warmer than its peers under load"
    assert part.answer == "While the burn-in held all busy, 1 GPU stayed 8 °C or more on the bad side of the median."
    rows = re.findall(r'<text [^>]*text-anchor="end"[^>]*class="fill-(\w+)">([^<]*)</text>', part.chart.svg)
    assert rows[0] == ("bad", "n02/gpu1")
    assert len({name for _, name in rows if "/" in name}) == 8
    assert [tone for tone, _ in rows].count("bad") == 1


def test_gpus_that_are_alike_stand_without_colour_that_warns(tmp_path: Path) -> None:
    part = heat(day_of_gpus(tmp_path))
    assert part.chart is not None
    assert part.chart.title == "All 8 GPUs alike under load: none 8 °C warmer"
    assert "fill-bad" not in part.chart.svg


def test_gpus_are_not_compared_where_nothing_was_read_while_all_were_busy(tmp_path: Path) -> None:
    part = heat(day_of_gpus(tmp_path, warm="n02/gpu1", cold_after=40))
    assert part.chart is not None
    assert part.chart.title == "The hottest, n02/gpu1: 81 °C"
    assert part.answer.startswith("GPUs are not compared")
    assert "fill-bad" not in part.chart.svg


def test_a_subject_that_was_never_promised_and_times_outside_the_run_are_passed_over(tmp_path: Path) -> None:
    run = day_of_gpus(tmp_path)
    odd = [
        {**window("n00", 0, -100_000, 900.0)},
        {**window("n00", 0, 100_000, 900.0)},
        {**window("n99", 0, 5, 900.0)},
        {**window("n00", 1, 5, float("nan")), "maximum": float("inf")},
    ]
    pq.write_table(pa.Table.from_pylist(odd), run.path / "telemetry" / "n00" / "0001.parquet")
    chart = heat(run).chart
    assert chart is not None
    assert "900" not in chart.svg
    assert "n99" not in chart.svg


def test_no_heat_map_is_drawn_without_telemetry_of_two_gpus(tmp_path: Path) -> None:
    run = day_of_gpus(tmp_path)
    shutil.rmtree(run.path / "telemetry")
    assert over_time(Measured(run)) == ()
