"""Evidence: records hold what was measured and nothing else, and a run directory shows every loss."""

import json
import math
import os
import random
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest
from generated_runs import make_run, write_records, write_run
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hwlottery.evidence import (
    CATALOGUE,
    AnyRecord,
    Event,
    Fact,
    Measurement,
    NotMeasured,
    RunError,
    RunWriter,
    TrialPlan,
    measured,
    metric,
    node_name,
    parse_subject,
    read_run,
    value_of,
)
from hwlottery.evidence.plain_words import in_plain_words
from hwlottery.evidence.records import MOST_SAMPLES, QUANTILES
from hwlottery.evidence.subjects import KINDS

finite = st.floats(allow_nan=False, allow_infinity=False, width=64)
names = st.from_regex(r"[a-z][a-z0-9]{0,8}", fullmatch=True)
scalars = st.booleans() | st.integers(-(2**53), 2**53) | finite | st.text(max_size=20)
params = st.dictionaries(names, scalars, max_size=4)
details = st.text(max_size=60)
times = st.datetimes(datetime(2020, 1, 1), datetime(2035, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001
subjects = st.sampled_from(["cluster", "n00", "n00/gpu3", "n01~n07", "fs:/shared", "n00/fs:/a b", "domain:D3"])

facts = st.builds(Fact, subject=subjects, key=names, value=scalars, trial=st.none() | names)
measurements = st.builds(
    Measurement,
    metric=st.sampled_from([one.name for one in CATALOGUE]),
    subject=subjects,
    params=params,
    samples=st.lists(finite, min_size=1, max_size=30).map(tuple),
    attempt=st.integers(1, 5),
    start=st.none() | times,
)
reasons = st.sampled_from(["timeout", "died"])
absences = st.builds(NotMeasured, metric=names, subject=subjects, reason=reasons, params=params, detail=details)
events = st.builds(Event, time=times, kind=st.sampled_from(["note", "xid", "hang"]), subject=subjects, detail=details)
plans = st.builds(
    TrialPlan, trial=names, probe=names, function=names, method=names, ranks=st.just(()), deadline_s=finite
)
records = st.one_of(facts, measurements, absences, events, plans)


# --- records ------------------------------------------------------------------------------------------------------


@given(records)
def test_a_record_comes_back_as_it_was_written(record: AnyRecord) -> None:
    assert msgspec.json.decode(msgspec.json.encode(record), type=AnyRecord) == record


@given(st.lists(st.floats(), max_size=40))
def test_samples_that_are_not_all_finite_are_not_measured(samples: list[float]) -> None:
    record = measured(metric="memory.copy", subject="n00/gpu0", samples=samples)
    if samples and all(map(math.isfinite, samples)):
        assert isinstance(record, Measurement)
        assert record.samples == tuple(samples)
    else:
        assert isinstance(record, NotMeasured)
        assert record.reason == ("not_finite" if samples else "not_returned")


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"samples": ()},
        {"samples": (1.0,), "value": 1.0},
        {"samples": (math.nan,)},
        {"samples": (math.inf, 1.0)},
        {"value": math.nan},
        {"quantiles": (1.0, 2.0), "count": 5},
        {"quantiles": tuple(map(float, range(len(QUANTILES))))},
        {"samples": tuple(map(float, range(MOST_SAMPLES + 1)))},
    ],
)
def test_a_measurement_without_one_finite_value_cannot_be_made_or_read(fields: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"finite|samples|quantiles|either"):
        Measurement(metric="memory.copy", subject="n00/gpu0", **fields)  # type: ignore[arg-type]
    line = json.dumps({"type": "measurement", "metric": "memory.copy", "subject": "n00/gpu0", **fields})
    with pytest.raises(msgspec.MsgspecError):
        msgspec.json.decode(line.encode(), type=Measurement)


@pytest.mark.parametrize(
    "line",
    [
        b'{"type":"fact","subject":"n00","key":"k","value":' + b"9" * 400 + b"}",
        b'{"type":"measurement","metric":"m","subject":"n00","value":1.0,"params":{"bytes":9223372036854775808}}',
        b'{"type":"not_measured","metric":"m","subject":"n00","reason":"died","params":{"bytes":-9223372036854775809}}',
        b'{"type":"event","time":"2026-11-28T14:02:00","kind":"note"}',
    ],
)
def test_numbers_and_times_that_readers_understand_differently_are_refused(line: bytes) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(line, type=AnyRecord)


@settings(max_examples=30)
@given(st.integers(0, 2**32), st.integers(MOST_SAMPLES + 1, MOST_SAMPLES + 200))
def test_many_samples_are_kept_as_quantiles_that_give_the_same_statistic(seed: int, count: int) -> None:
    chance = random.Random(seed)
    samples = [chance.gauss(100, 10) for _ in range(count)]
    record = measured(metric="memory.copy", subject="n00/gpu0", samples=samples)
    assert isinstance(record, Measurement)
    assert record.quantiles is not None
    assert record.count == len(samples)
    assert record.quantiles[0] == min(samples)
    assert record.quantiles[-1] == max(samples)
    assert list(record.quantiles) == sorted(record.quantiles)
    middle = value_of(record)
    assert middle is not None
    below = sum(sample <= middle for sample in samples)
    assert below >= len(samples) / 2
    assert sum(sample >= middle for sample in samples) >= len(samples) / 2


def test_a_statistic_that_quantiles_cannot_give_is_unknown() -> None:
    power = measured(metric="health.power", subject="n00/gpu0", samples=[700.0] * (MOST_SAMPLES + 1))
    assert isinstance(power, Measurement)
    assert metric("health.power").statistic == "mean"
    assert value_of(power) is None
    assert value_of(Measurement(metric="not.known", subject="n00", value=1.0)) is None


@given(st.text(max_size=30))
def test_any_text_is_a_subject_of_one_kind_or_refused_in_one_line(text: str) -> None:
    try:
        found = parse_subject(text)
    except ValueError as error:
        refusal = str(error)
        assert "\n" not in refusal
        return
    assert found.kind in KINDS
    assert found.text == text


@pytest.mark.parametrize(
    ("text", "kind", "nodes"),
    [
        ("cluster", "cluster", ()),
        ("domain:D3", "domain", ()),
        ("n03", "node", ("n03",)),
        ("gpu-17.rack2", "node", ("gpu-17.rack2",)),
        ("n03/gpu2", "gpu", ("n03",)),
        ("n03/slot1", "slot", ("n03",)),
        ("n03/numa0", "numa", ("n03",)),
        ("n03/mlx5_2", "nic", ("n03",)),
        ("n03/fs:/scratch", "filesystem", ("n03",)),
        ("fs:/shared/a b", "filesystem", ()),
        ("n01~n07", "pair", ("n01", "n07")),
        ("n01~n07/rail3", "rail", ("n01", "n07")),
        ("leaf1:17=n03/mlx5_2", "link", ("n03",)),
    ],
)
def test_subjects_are_taken_apart(text: str, kind: str, nodes: tuple[str, ...]) -> None:
    found = parse_subject(text)
    assert (found.kind, found.nodes) == (kind, nodes)


@given(st.text(max_size=100))
def test_any_hostname_becomes_a_node_name(hostname: str) -> None:
    found = parse_subject(node_name(hostname))
    assert found.kind == "node"


def test_each_metric_stands_once_and_an_unknown_one_names_the_nearest() -> None:
    names_seen = [one.name for one in CATALOGUE]
    assert len(names_seen) == len(set(names_seen))
    with pytest.raises(KeyError, match=r"did you mean matmul\.tflops"):
        metric("matmul.tflop")


# --- the run directory --------------------------------------------------------------------------------------------


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(records, max_size=30))
def test_what_is_written_is_read_back_in_order_and_whole(
    tmp_path_factory: pytest.TempPathFactory, written: list[AnyRecord]
) -> None:
    header, _ = make_run(nodes=1, accelerators=1)
    path = write_records(tmp_path_factory.mktemp("written") / "run", header, written)
    run = read_run(path)
    assert run.problems == []
    assert run.header == header
    assert run.last_number == len(written) + 1
    assert [one.number for one in run.events] == sorted(one.number or 0 for one in run.events)
    found = {one.number: one for one in (*run.facts, *run.plans)}
    for number, record in enumerate(written, 1):
        if isinstance(record, Fact | TrialPlan) and number in found:
            assert msgspec.structs.replace(found[number], number=None) == in_plain_words(record)


@pytest.fixture
def run_path(tmp_path: Path) -> Path:
    return write_run(tmp_path / "run", nodes=1, accelerators=2)


def kinds_of_problems(path: Path) -> set[str]:
    return {problem.kind for problem in read_run(path).problems}


def test_a_finished_run_has_no_problems(run_path: Path) -> None:
    assert read_run(run_path).complete


def _first_lines(path: Path, name: str, change: Callable[[list[bytes]], list[bytes]]) -> None:
    file = path / name
    file.write_bytes(b"".join(change(file.read_bytes().splitlines(keepends=True))))


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        (lambda lines: lines[1:], "gap"),
        (lambda lines: [lines[0], *lines], "duplicate"),
        (lambda lines: [b"{\n", *lines[1:]], "unreadable"),
        (lambda lines: [*lines[:-1], lines[-1][:-3]], "unreadable"),
        (lambda lines: [lines[0].replace(b'"number":', b'"nummer":'), *lines[1:]], "unreadable"),
        (lambda lines: [lines[1], lines[0], *lines[2:]], "checksum"),
        (lambda lines: [], "gap"),
    ],
)
def test_a_changed_record_file_is_noticed(
    run_path: Path, change: Callable[[list[bytes]], list[bytes]], kind: str
) -> None:
    _first_lines(run_path, "measurements.jsonl", change)
    assert {kind, "checksum"} <= kinds_of_problems(run_path)


def test_a_run_without_its_end_is_unfinished(tmp_path: Path) -> None:
    path = write_run(tmp_path / "run", nodes=1, accelerators=1, faults=["unfinished@cluster"])
    assert kinds_of_problems(path) == {"unfinished", "missing"}


def test_files_that_the_sums_do_not_cover_and_links_are_noticed_and_not_followed(
    run_path: Path, tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret\n")
    (run_path / "logs" / "more.log").write_text("more\n")
    (run_path / "logs" / "link.log").symlink_to(secret)
    problems = read_run(run_path).problems
    assert {problem.place for problem in problems} == {"logs/more.log", "logs/link.log"}
    assert all(problem.kind == "foreign" for problem in problems)
    (run_path / "facts.jsonl").unlink()
    (run_path / "facts.jsonl").symlink_to(secret)
    assert "missing" in kinds_of_problems(run_path)


def test_a_named_pipe_among_the_files_does_not_block_the_reader(run_path: Path) -> None:
    os.mkfifo(run_path / "logs" / "pipe")
    (run_path / "facts.jsonl").unlink()
    os.mkfifo(run_path / "facts.jsonl")
    assert {"foreign", "missing", "gap"} <= kinds_of_problems(run_path)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"{", "cannot be read"),
        (b'{"format": 99}', "use a newer hwlottery"),
        (b'{"format": 1}', "cannot be read"),
        (b'{"format": "one"}', "cannot be read"),
        (b"[" * 100_000, "cannot be read"),
        (b"\xff\xfe", "cannot be read"),
    ],
)
def test_a_header_that_cannot_be_used_ends_in_one_line(run_path: Path, content: bytes, told: str) -> None:
    (run_path / "run.json").write_bytes(content)
    with pytest.raises(RunError, match=told) as error:
        read_run(run_path)
    assert "\n" not in str(error.value)


def test_what_is_no_run_is_said(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"it has no run\.json"):
        read_run(tmp_path)
    with pytest.raises(RunError, match=r"it has no run\.json"):
        read_run(tmp_path / "nowhere")


def test_a_run_is_never_written_over(run_path: Path) -> None:
    with pytest.raises(RunError, match="exists already"):
        RunWriter.create(run_path, read_run(run_path).header)


def test_a_torn_last_line_is_set_aside_on_resume_and_numbers_go_on(tmp_path: Path) -> None:
    path = write_run(tmp_path / "run", nodes=1, accelerators=1, faults=["unfinished@cluster"])
    whole = read_run(path).last_number
    with (path / "measurements.jsonl").open("ab") as torn:
        torn.write(b'{"type":"measurement","num')
    writer, run = RunWriter.resume(path)
    assert run.last_number == whole
    writer.finish()
    again = read_run(path)
    assert again.problems == []
    assert [event.kind for event in again.events][-2:] == ["torn_tail", "run_finished"]
    assert (path / "logs" / "torn-measurements.jsonl").read_bytes() == b'{"type":"measurement","num\n'


def test_a_trial_that_a_cut_run_began_twice_counts_from_its_last_beginning(tmp_path: Path) -> None:
    header, _ = make_run(nodes=1, accelerators=1)
    plan = TrialPlan(trial="t", probe="p", function="f", method="1", ranks=("n00/gpu0",), deadline_s=1.0)
    first = Measurement(metric="memory.copy", subject="n00/gpu0", value=1.0, trial="t")
    second = msgspec.structs.replace(first, value=2.0)
    path = write_records(tmp_path / "run", header, [plan, first, plan, second])
    assert [record.value for record in read_run(path).measurements] == [2.0]


@given(st.binary(max_size=400))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_bytes_in_a_record_file_are_problems_and_no_crash(run_path: Path, rubbish: bytes) -> None:
    content = (run_path / "facts.jsonl").read_bytes()
    (run_path / "facts.jsonl").write_bytes(content + rubbish)
    try:
        assert read_run(run_path).complete == (not rubbish)
    finally:
        (run_path / "facts.jsonl").write_bytes(content)


def test_the_hostile_path_in_the_sums_is_not_opened(run_path: Path) -> None:
    with (run_path / "SHA256SUMS").open("a") as sums:
        sums.write("0" * 64 + "  ../../../../etc/passwd\n")
    problems = read_run(run_path).problems
    assert [problem.kind for problem in problems] == ["missing"]


def test_a_run_json_that_is_a_link_is_said_to_be_one(tmp_path: Path) -> None:
    (tmp_path / "real.json").write_text("{}")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "run.json").symlink_to(tmp_path / "real.json")
    with pytest.raises(RunError, match=r"run\.json is a symbolic link, and no link is followed"):
        read_run(tmp_path / "run")
    (tmp_path / "empty").mkdir()
    with pytest.raises(RunError, match=r"it has no run\.json"):
        read_run(tmp_path / "empty")


@pytest.mark.parametrize("place", [0, 0.5, 1])
@pytest.mark.parametrize("torn", [b"\n", b"{}\n", b'{"type":"measurement"\n'])
def test_a_line_that_is_none_among_megabytes_is_named_by_its_place_and_costs_itself_alone(tmp_path, place, torn):
    file = write_run(tmp_path / "run", nodes=16) / "measurements.jsonl"
    lines = file.read_bytes().splitlines(keepends=True)
    assert sum(map(len, lines)) > 2 * 2**20
    at = round(place * (len(lines) - 1))
    lines[at] = torn
    file.write_bytes(b"".join(lines))
    run = read_run(file.parent)
    assert run.line_counts["measurements.jsonl"] == len(lines) - 1
    assert [one.place for one in run.problems if one.kind == "unreadable"] == [f"measurements.jsonl:{at + 1}"]
