"""The health chart from telemetry: drawn where it can be read, left out where it cannot."""

from pathlib import Path

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
