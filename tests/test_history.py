"""Many runs together: who is covered, which machines keep failing under whatever name, and what was paid for."""

import json
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest
from generated_runs import make_run, write_records
from hypothesis import given, settings
from hypothesis import strategies as st

from hwlottery.evidence import Event, Fact
from hwlottery.reports.over_time import lines, sparkline
from hwlottery.scoring.history import History, history_of
from hwlottery.scoring.past_runs import PastRun, Seen

NOW = datetime(2026, 11, 28, 12, tzinfo=UTC)


def seen(name: str, machine: str | None = None, *, partners: Sequence[str] = (), failed: Sequence[str] = ()) -> Seen:
    return Seen(
        name=name,
        machine=machine or f"hw-{name}",
        accelerators=8,
        joined=True,
        measured=True,
        partners=frozenset(partners),
        failed=tuple(failed),
    )


def past(days_ago: float, *nodes: Seen, **more: object) -> PastRun:
    began = NOW - timedelta(days=days_ago)
    given = {
        "run_id": f"run-{days_ago}", "path": f"run-{days_ago}", "cluster": "P fra-2", "started": began,
        "ended": began + timedelta(hours=1), "verdict": "GO", "whole": True, "nodes": nodes, "middles": (),
        "failures": 0, "node_days": 1.0, "price_per_gpu_hour": 2.0, "contains": frozenset(), **more,
    }  # fmt: skip
    return PastRun(**given)  # type: ignore[arg-type]


def judged(*runs: PastRun, **more: object) -> History:
    return history_of(runs, at=NOW, **more)  # type: ignore[arg-type]


def missing(history: History) -> dict[str, tuple[str, ...]]:
    return {one.node: one.missing for cluster in history.clusters for one in cluster.uncovered}


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(st.floats(0.1, 30), st.sets(st.sampled_from(["a", "b", "c", "d"]), min_size=1), st.booleans()),
        min_size=1,
        max_size=8,
        unique_by=lambda run: run[0],
    )
)
def test_a_node_is_covered_just_where_it_was_measured_within_the_days_and_with_a_partner(
    runs: list[tuple[float, set[str], bool]],
) -> None:
    made = [
        past(ago, *(seen(name, partners=sorted(names - {name}) if paired else ()) for name in sorted(names)))
        for ago, names, paired in runs
    ]
    gaps = missing(judged(*made))
    everybody = {name for _, names, _ in runs for name in names}
    for name in everybody:
        recent = [(names, paired) for ago, names, paired in runs if name in names and ago - 1 / 24 <= 7]
        expected = () if recent else ("measured",)
        if len(everybody) > 1 and not any(paired and len(names) > 1 for names, paired in recent):
            expected += ("partner",)
        assert gaps.get(name, ()) == expected


def test_measurements_of_the_machine_before_do_not_cover_the_one_there_now() -> None:
    new = msgspec.structs.replace(seen("n01", "hw-new"), measured=False)
    history = judged(past(2, seen("n01", "hw-old")), past(1, new))
    assert missing(history) == {"n01": ("measured",)}
    assert history.exit_code == 4


def test_nodes_that_were_given_back_are_not_asked_for_where_the_cluster_now_is_named() -> None:
    runs = (past(20, seen("n01"), seen("n02")), past(1, seen("n01")))
    assert "n02" in missing(judged(*runs))
    assert judged(*runs, nodes=("n01",)).exit_code == 0
    assert missing(judged(*runs, nodes=("n01", "n09"))) == {"n01": ("partner",), "n09": ("measured", "partner")}


def test_a_machine_that_fails_in_two_runs_keeps_failing_whatever_it_is_called() -> None:
    history = judged(
        past(15, seen("n03", "hw-x", failed=["matmul.rate"])),
        past(8, seen("n03", "hw-y")),
        past(1, seen("n12", "hw-x", failed=["memory.copy"]), seen("n03", "hw-y")),
    )
    (lemon,) = history.clusters[0].lemons
    assert (lemon.here, lemon.names, lemon.back) == ("n12", ("n03", "n12"), True)
    assert lemon.checks == ("matmul.rate", "memory.copy")
    assert history.exit_code == 3
    assert any("Keeps failing: n12 (was n03), in 2 of 2 runs" in line for line in lines(history))


def test_a_machine_that_failed_and_comes_back_after_another_took_its_place_is_told() -> None:
    runs = [past(15, seen("n03", "x", failed=["a"])), past(8, seen("n03", "y")), past(1, seen("n03", "x"))]
    (lemon,) = judged(*runs).clusters[0].lemons
    assert (lemon.back, lemon.here) == (True, "n03")
    assert judged(*runs[:2]).clusters[0].lemons == ()


def test_one_bad_day_makes_no_lemon_and_a_lemon_that_is_gone_fails_nothing() -> None:
    bad = seen("n01", "x", failed=["a"])
    assert judged(past(2, bad), past(1, seen("n01", "x"))).exit_code == 0
    gone = judged(past(3, bad), past(2, bad), past(1, seen("n01", "y")))
    assert gone.clusters[0].lemons[0].here is None
    assert gone.exit_code == 0


def test_failures_are_pooled_and_an_accepted_run_that_others_joined_counts_once() -> None:
    first = past(9, seen("n01"), failures=1, node_days=10.0)
    joined = past(2, seen("n01"), failures=1, node_days=30.0, contains=frozenset({first.run_id}))
    rates = judged(first, joined).clusters[0].rates
    assert (rates.failures, rates.node_days) == (1, 30.0)
    assert (rates.low, rates.high) == (pytest.approx(0.0513 / 30, rel=1e-2), pytest.approx(4.744 / 30, rel=1e-3))
    quiet = judged(past(1, seen("n01"), node_days=32.0)).clusters[0].rates
    assert quiet.high == pytest.approx(0.0936, rel=1e-3), "never an infinite time between failures"


def test_the_ledger_counts_what_each_run_found_until_the_next() -> None:
    lost = msgspec.structs.replace(seen("n02"), joined=False)
    bad = seen("n01", failed=["a"])
    ledger = judged(past(4, seen("n01"), seen("n02")), past(2, bad, lost)).clusters[0].ledger
    assert (ledger.paid, ledger.delivered, ledger.healthy) == (192, 144, 96)
    assert (ledger.usd, ledger.usd_unhealthy) == (192 * 16, 96 * 16)
    free = judged(past(1, seen("n01"), price_per_gpu_hour=None)).clusters[0].ledger
    assert free.usd is None


@given(st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=60))
def test_a_sparkline_has_a_bar_a_value_and_the_greatest_is_never_under_the_least(values: list[float]) -> None:
    bars = sparkline(values)
    assert len(bars) == min(40, len(values))
    shown = values[-40:]
    assert bars[shown.index(max(shown))] >= bars[shown.index(min(shown))]


def test_noise_is_no_mountain() -> None:
    assert set(sparkline([100.0, 100.4, 99.9])) <= set("▄▅")


# --- the command --------------------------------------------------------------------------------------------------


def write_week(folder: Path, week: int, machines: dict[str, str], **wanted: object) -> Path:
    """A generated run so many weeks before NOW, with this hardware behind the names."""
    header, records = make_run(accelerators=2, seed=100 + week, hours=2, **wanted)  # type: ignore[arg-type]
    back = NOW - timedelta(weeks=week, days=1) - header.segments[0].start
    kept = [
        msgspec.structs.replace(record, time=record.time + back)
        if isinstance(record, Event)
        else msgspec.structs.replace(record, value=machines.get(record.subject, record.value))
        if isinstance(record, Fact) and record.key == "hardware.identity"
        else record
        for record in records
    ]
    segment = msgspec.structs.replace(header.segments[0], start=header.segments[0].start + back)
    return write_records(folder / f"week-{week}", msgspec.structs.replace(header, segments=(segment,)), kept)


@pytest.fixture(scope="module")
def weeks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("weeks")
    write_week(folder, 4, {"n01": "lemon"}, faults=["slow@n01/gpu1=0.78"])
    write_week(folder, 2, {"n01": "other"})
    write_week(folder, 0, {"n01": "other", "n03": "lemon"}, faults=["slow@n03/gpu1=0.78"])
    (folder / "empty").mkdir()
    (folder / "hostile").mkdir()
    (folder / "hostile" / "run.json").write_text('{"format": 2, "run_id": "\\u001b[2J"}')
    (folder / "linked").symlink_to("/")
    return folder


def history(*arguments: object) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "hwlottery", "history", *map(str, arguments)],
        capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip


def test_the_node_that_was_returned_is_named_when_it_is_back(weeks: Path) -> None:
    result = history(weeks, "--at", "2026-11-28", "--json")
    assert result.returncode == 3, result.stderr
    told = json.loads(result.stdout)
    (cluster,) = told["clusters"]
    assert [run["path"].rsplit("/", 1)[1] for run in cluster["runs"]] == ["week-4", "week-2", "week-0"]
    (lemon,) = cluster["lemons"]
    assert (lemon["here"], lemon["names"], lemon["back"]) == ("n03", ["n01", "n03"], True)
    assert all(not one["missing"] for one in cluster["coverage"])
    assert {series["metric"] for series in cluster["series"]} >= {"matmul.tflops", "memory.copy"}
    assert sorted(one["path"] for one in told["skipped"]) == ["empty", "hostile"]
    assert "Keeps failing: n03 (was n01)" in result.stderr
    assert "\x1b" not in result.stderr
    assert "matmul.mismatches" not in result.stderr, "what is always 0 is counted, not drawn"
    assert "had the same value in every run" in result.stderr


def test_what_is_too_long_ago_is_not_covered_and_quiet_prints_nothing(weeks: Path) -> None:
    result = history(weeks, "--at", "2026-11-21", "--days", "1", "--quiet")
    assert (result.returncode, result.stdout, result.stderr) == (4, "", "")


def test_a_folder_without_runs_covers_nothing(tmp_path: Path) -> None:
    assert history(tmp_path).returncode == 4
