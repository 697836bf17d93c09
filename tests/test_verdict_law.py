"""The law of the verdict: damage never makes a run better.

A run that could not be signed still cannot after any damage to its evidence, and one that still can has at least the
exclusions it had. Tested on files (against checksums, numbering and reading) and on the list of records rewritten with
numbers and sums of its own (against scoring alone).
"""

import os
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path

import msgspec
import pytest
from generated_runs import as_run, make_run, write_records, write_run
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hwlottery.evidence import (
    AnyRecord,
    Event,
    Measurement,
    NotMeasured,
    RunError,
    RunHeader,
    TrialPlan,
    metric,
    read_run,
)
from hwlottery.evidence.record_file import RECORD_FILES
from hwlottery.scoring import Policy, PolicyError, Verdict, load_policy, policy_from_text, score_run

# What each run is before any damage: the law needs all four.
RUNS: dict[str, tuple[str, list[str]]] = {
    "healthy": ("GO", []),
    "one slow accelerator": ("CONDITIONAL", ["slow@n01/gpu1=0.78"]),
    "one node that never joined": ("CONDITIONAL", ["never_joined@n02"]),
    "one node that hung": ("CONDITIONAL", ["hung@n03/gpu0"]),
    "one intermittent accelerator": ("GO", ["intermittent@n00/gpu0"]),
    "a wrong bit seen once": ("CONDITIONAL", ["mismatch_once@n01/gpu1=2"]),
    "a hang in a trial that nobody asks for": ("CONDITIONAL", ["hung_aside@n02"]),
    "an error that only a sensor saw": ("CONDITIONAL", ["ecc@n01/gpu0=1"]),
    "such an error on too many nodes": ("NO_GO", ["ecc@n01/gpu0=1", "ecc@n02/gpu1=1"]),
    "one node slow with everybody": ("CONDITIONAL", ["slow_node@n01=0.6"]),
    "one node that loses packets": ("CONDITIONAL", ["lossy_node@n01"]),
    "one slow link": ("CONDITIONAL", ["slow_link@n00~n02=0.6"]),
    "one slow rail of a node": ("CONDITIONAL", ["slow_rail@n01/rail1=0.6"]),
    "two nodes gone": ("NO_GO", ["never_joined@n02", "lost@n03"]),
    "training does not learn": ("NO_GO", ["loss_rises@cluster"]),
    "wrong results on two nodes": ("NO_GO", ["mismatch@n00/gpu0=2", "wrong_elements@n01=4"]),
    "a sample was NaN": ("INCONCLUSIVE", ["nan@n00/gpu0"]),
    "no fio on one node": ("INCONCLUSIVE", ["tool_missing@n01"]),
    "an outlier that was not retested": ("INCONCLUSIVE", ["slow_memory@n02/gpu0=0.85"]),
    "a value never came, beside a slow accelerator": ("INCONCLUSIVE", ["missing@n00/gpu1", "slow@n01/gpu1=0.78"]),
}
# Of these, one record tells all, and only the count at its trial's end tells that it was there.
NEEDS_COUNTS = ("an error that only a sensor saw", "such an error on too many nodes")
UNCOUNTED = [name for name in RUNS if name not in NEEDS_COUNTS][::5]
CASES = [(name, True) for name in RUNS] + [(name, False) for name in UNCOUNTED]
# Leaving out one record after another takes seconds a run: every third here, the rest among the slow tests.
ONE_BY_ONE = [
    case if place % 3 == 0 else pytest.param(*case, marks=pytest.mark.slow) for place, case in enumerate(CASES)
]
SLOW_DISK = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture]


def standing(verdict: Verdict | None) -> tuple[bool, frozenset[str]]:
    """Whether a run can be signed, and which nodes it excludes; an unreadable one cannot."""
    return (False, frozenset()) if verdict is None else (verdict.signable, frozenset(verdict.exclude))


def judged(path: Path, policy: Policy | None = None) -> Verdict | None:
    """The verdict on a run directory, None where it cannot be read or judged at all."""
    try:
        return score_run(read_run(path), policy)
    except (RunError, PolicyError):
        return None


def assert_no_better(before: Verdict | None, after: Verdict | None, what: str) -> None:
    """The law."""
    could, excluded = standing(before)
    can, excludes = standing(after)
    assert could or not can, f"{what} made a run signable: {after}"
    assert not can or excludes >= excluded, f"{what} took {excluded - excludes} off the exclusions"


# --- the list of records ------------------------------------------------------------------------------------------


@cache
def records_of(name: str, counted: bool) -> tuple[RunHeader, tuple[AnyRecord, ...]]:
    """The records of a generated run; without `counted` a trial's end does not say how many records it has."""
    header, records = make_run(nodes=4, accelerators=2, faults=RUNS[name][1], seed=7)
    if not counted:
        records = [msgspec.structs.replace(r, counts=None) if isinstance(r, Event) else r for r in records]
    return header, tuple(records)


@pytest.mark.parametrize("name", RUNS)
def test_the_generated_runs_have_the_verdicts_that_the_law_is_tested_on(tmp_path: Path, name: str) -> None:
    word, faults = RUNS[name]
    path = write_run(tmp_path / "run", nodes=4, accelerators=2, faults=faults, seed=7)
    verdict = score_run(read_run(path))
    assert verdict.verdict == word, verdict.reasons
    assert verdict == score_run(as_run(*_listed(name)))


def _listed(name: str) -> tuple[RunHeader, list[AnyRecord]]:
    header, records = records_of(name, counted=True)
    return header, list(records)


@pytest.mark.parametrize(("name", "counted"), CASES)
@settings(max_examples=8, deadline=None)
@given(st.data())
def test_records_left_out_before_writing_never_make_a_run_better(name: str, counted: bool, data: st.DataObject) -> None:
    header, records = records_of(name, counted)
    droppable = [place for place, record in enumerate(records) if not isinstance(record, TrialPlan)]
    few = st.lists(st.sampled_from(droppable), min_size=1, max_size=6, unique=True)
    many = st.integers(0, 2**32).map(lambda seed: random.Random(seed).sample(droppable, len(droppable) // 3))
    gone = set(data.draw(few | many))
    kept = [record for place, record in enumerate(records) if place not in gone]
    before = score_run(as_run(header, list(records)))
    after = score_run(as_run(header, kept))
    dropped = [records[place] for place in sorted(gone)][:3]
    assert_no_better(before, after, f"leaving out {dropped}")


@pytest.mark.parametrize(("name", "counted"), ONE_BY_ONE)
def test_no_single_record_can_be_left_out_to_make_a_run_better(name: str, counted: bool) -> None:
    header, records = records_of(name, counted)
    before = score_run(as_run(header, list(records)))
    for place, record in enumerate(records):
        if not isinstance(record, TrialPlan) and _may_matter(record, place):
            after = score_run(as_run(header, [*records[:place], *records[place + 1 :]]))
            assert_no_better(before, after, f"leaving out {record}")


def _may_matter(record: AnyRecord, place: int) -> bool:
    """Every event and whatever speaks of a fault; of the many healthy values and facts, one in 61."""
    if isinstance(record, Event | NotMeasured) or place % 61 == 0:
        return True
    if not isinstance(record, Measurement):
        return False
    counts_faults = metric(record.metric).unit in ("elements", "errors", "rows", "nats", "ranks")
    slow = record.metric == "matmul.tflops" and record.subject == "n01/gpu1"
    return slow or (counts_faults and any(record.samples or ()))


@settings(max_examples=10, deadline=None, suppress_health_check=SLOW_DISK)
@given(seed=st.integers(0, 2**32), name=st.sampled_from(sorted(RUNS)))
def test_records_left_out_and_written_consistently_never_make_a_run_better(
    tmp_path_factory: pytest.TempPathFactory, seed: int, name: str
) -> None:
    header, records = _listed(name)
    chance = random.Random(seed)
    kept = [r for r in records if isinstance(r, TrialPlan) or chance.random() > 0.02]
    path = write_records(tmp_path_factory.mktemp("law") / "run", header, kept)
    assert not read_run(path).problems
    assert_no_better(score_run(as_run(header, records)), judged(path), f"leaving out with seed {seed}")


# --- records written otherwise, whole and consistent -------------------------------------------------------------

Records = list[AnyRecord]
Rewriting = Callable[[RunHeader, Records], tuple[RunHeader, Records]]
changed = msgspec.structs.replace


def _last_time(records: Records) -> datetime:
    return max(record.time for record in records if isinstance(record, Event))


def _with(kind: str, subject: str, severity: str) -> Rewriting:
    """The run with one event more."""

    def rewrite(header: RunHeader, records: Records) -> tuple[RunHeader, Records]:
        more = Event(time=_last_time(records), kind=kind, subject=subject, severity=severity)  # type: ignore[arg-type]
        return header, [*records, more]

    return rewrite


def _every(wanted: Callable[[AnyRecord], bool], change: Callable[[AnyRecord], AnyRecord]) -> Rewriting:
    """The run with all records of a sort changed alike."""
    return lambda header, records: (header, [change(one) if wanted(one) else one for one in records])


def _is(metric_name: str) -> Callable[[AnyRecord], bool]:
    return lambda record: isinstance(record, Measurement) and record.metric == metric_name


def _all_at(metric_name: str, number: float) -> Rewriting:
    return _every(_is(metric_name), lambda record: changed(record, samples=(number,) * 5, quantiles=None, count=None))


def _ended_as(outcome: str | None) -> Rewriting:
    """The end of the last trial tells something else."""

    def rewrite(header: RunHeader, records: Records) -> tuple[RunHeader, Records]:
        last = max(p for p, one in enumerate(records) if isinstance(one, Event) and one.kind == "trial_ended")
        return header, [changed(r, outcome=outcome) if p == last else r for p, r in enumerate(records)]

    return rewrite


def _in_header(**change: Callable[[RunHeader], object]) -> Rewriting:
    return lambda header, records: (changed(header, **{key: make(header) for key, make in change.items()}), records)


def _second_value(header: RunHeader, records: Records) -> tuple[RunHeader, Records]:
    copy = next(record for record in records if _is("memory.copy")(record))
    return header, [*records, copy]


def _second_start(**other: object) -> Callable[[RunHeader], object]:
    """One start more, an hour later, that found something else."""

    def segments(header: RunHeader) -> object:
        first = header.segments[0]
        return (first, changed(first, start=first.start + timedelta(hours=1), **other))

    return segments


REWRITINGS: dict[str, Rewriting] = {
    "an Xid that blames the cluster": _with("xid", "cluster", "fatal"),
    "a lost node that nobody promised": _with("node_lost", "n77", "error"),
    "a hang of the cluster, called information": _with("hang", "cluster", "info"),
    "an error of the cluster": _with("note", "cluster", "error"),
    "stopped after the last trial": _with("interrupted", "cluster", "info"),
    "a trial that ended without an outcome": _ended_as(None),
    "a trial that ended as interrupted": _ended_as("interrupted"),
    "a trial that raised and lacks nothing": _ended_as("raised"),
    "rates below zero": _all_at("memory.host_to_device", -55.0),
    "rates of zero": _all_at("all_reduce.busbw", 0.0),
    "products above the peak": _all_at("matmul.tflops", 5000.0),
    "memory above the peak": _all_at("memory.copy", 1e5),
    "times of zero": _all_at("checkpoint.save", 0.0),
    "half an error": _all_at("health.ecc_uncorrected", -0.5),
    "fewer than no wrong elements": _all_at("matmul.mismatches", -1.0),
    "more than all readings throttled": _all_at("health.throttled", 1.5),
    "a value written twice": _second_value,
    "values without a trial": _every(_is("memory.copy"), lambda record: changed(record, trial=None)),
    "values of another attempt than planned": _every(_is("memory.copy"), lambda record: changed(record, attempt=9)),
    "plans that foresee nothing": _every(lambda r: isinstance(r, TrialPlan), lambda plan: changed(plan, fills=())),
    "a promise of one node less": _in_header(promised=lambda header: header.promised[:-1]),
    "a promise of one rank a node": _in_header(
        promised=lambda header: tuple(changed(node, ranks=node.ranks[:1]) for node in header.promised)
    ),
    "a node promised twice": _in_header(promised=lambda header: (*header.promised, header.promised[0])),
    "ranks promised twice": _in_header(
        promised=lambda header: tuple(changed(node, ranks=node.ranks * 2) for node in header.promised)
    ),
    "GPUs promised as CPUs": _in_header(
        promised=lambda header: tuple(changed(node, device="cpu") for node in header.promised)
    ),
    "all but one probe left out": _in_header(only=lambda _header: ("matmul",)),
    "another profile text": _in_header(profile=lambda header: changed(header.profile, text="name: lax\n")),
    "the same start twice": _in_header(segments=lambda header: header.segments * 2),
    "torch changed on the way": _in_header(
        segments=_second_start(software={f"n0{node}": {"torch": "1.0"} for node in range(4)})
    ),
    "a method changed on the way": _in_header(segments=_second_start(methods={"matmul": "99"})),
}


@pytest.mark.parametrize("what", REWRITINGS)
def test_a_run_rewritten_as_a_whole_is_no_better_and_a_healthy_one_is_not_signed(what: str) -> None:
    for name in RUNS:
        header, records = _listed(name)
        before = score_run(as_run(header, records))
        after = score_run(as_run(*REWRITINGS[what](header, list(records))))
        assert_no_better(before, after, f"{what} in {name}")
        if name == "healthy":
            assert not after.signable, f"{what} was not noticed"


# --- files --------------------------------------------------------------------------------------------------------

Damage = Callable[[Path, random.Random], None]


def _lines(path: Path, chance: random.Random) -> tuple[Path, list[bytes]]:
    file = path / chance.choice(RECORD_FILES)
    lines = file.read_bytes().splitlines(keepends=True) if file.is_file() else []
    return file, lines


def drop_lines(path: Path, chance: random.Random) -> None:
    file, lines = _lines(path, chance)
    gone = {chance.randrange(len(lines)) for _ in range(chance.randint(1, 5))} if lines else set()
    file.write_bytes(b"".join(line for place, line in enumerate(lines) if place not in gone))


def double_a_line(path: Path, chance: random.Random) -> None:
    file, lines = _lines(path, chance)
    if lines:
        lines.insert(chance.randrange(len(lines) + 1), chance.choice(lines))
    file.write_bytes(b"".join(lines))


def swap_lines(path: Path, chance: random.Random) -> None:
    file, lines = _lines(path, chance)
    if len(lines) > 1:
        one, other = chance.sample(range(len(lines)), 2)
        lines[one], lines[other] = lines[other], lines[one]
    file.write_bytes(b"".join(lines))


def move_a_line_to_another_file(path: Path, chance: random.Random) -> None:
    file, lines = _lines(path, chance)
    if lines:
        line = lines.pop(chance.randrange(len(lines)))
        file.write_bytes(b"".join(lines))
        with (path / chance.choice(RECORD_FILES)).open("ab") as other:
            other.write(line)


def make_a_line_unparsable(path: Path, chance: random.Random) -> None:
    file, lines = _lines(path, chance)
    if lines:
        place = chance.randrange(len(lines))
        lines[place] = chance.choice([b"{\n", b"\n", b"null\n", b"[]\n", b'{"type":"fact"}\n', b"\xff\xfe\n", b"NaN\n"])
    file.write_bytes(b"".join(lines))


def _fields(line: bytes) -> dict[str, object]:
    return msgspec.json.decode(line, type=dict[str, object])


def null_a_field(path: Path, chance: random.Random) -> None:
    _change_a_field(path, chance, lambda _value: None)


def leave_out_a_field(path: Path, chance: random.Random) -> None:
    file, lines = _lines(path, chance)
    if lines:
        place = chance.randrange(len(lines))
        fields = _fields(lines[place])
        del fields[chance.choice(sorted(fields))]
        lines[place] = msgspec.json.encode(fields) + b"\n"
    file.write_bytes(b"".join(lines))


def alter_a_value(path: Path, chance: random.Random) -> None:
    def altered(value: object) -> object:
        if isinstance(value, bool):
            return not value
        if isinstance(value, int | float):
            return value * 2 + 1
        if isinstance(value, str):
            return chance.choice([value + "x", "n00", "finished", "node_joined", "info", ""])
        if isinstance(value, list):
            return [altered(one) for one in value]
        return {}

    _change_a_field(path, chance, altered)


def _change_a_field(path: Path, chance: random.Random, change: Callable[[object], object]) -> None:
    file, lines = _lines(path, chance)
    if lines:
        place = chance.randrange(len(lines))
        fields = _fields(lines[place])
        key = chance.choice(sorted(fields))
        fields[key] = change(fields[key])
        lines[place] = msgspec.json.encode(fields) + b"\n"
    file.write_bytes(b"".join(lines))


def alter_the_header(path: Path, chance: random.Random) -> None:
    file = path / "run.json"
    fields = _fields(file.read_bytes())
    key = chance.choice(sorted(fields))
    choices: list[object] = [None, [], {}, "", 0, False, 99]
    if isinstance(fields[key], list):
        choices.append(fields[key][:-1])  # type: ignore[index]
    if key == "policy":
        text = "name: lax\nchecks: [{check: e, rule: evidence.complete, each: cluster, category: evidence}]\n"
        choices.append({"name": "lax", "sha256": "0" * 64, "text": text})
    fields[key] = chance.choice(choices)
    file.write_bytes(msgspec.json.encode(fields))


def _evidence(path: Path) -> list[Path]:
    return sorted(file for file in path.rglob("*") if file.is_file() and not file.is_symlink())


def delete_a_file(path: Path, chance: random.Random) -> None:
    chance.choice(_evidence(path)).unlink()


def empty_a_file(path: Path, chance: random.Random) -> None:
    chance.choice(_evidence(path)).write_bytes(b"")


def truncate_a_file(path: Path, chance: random.Random) -> None:
    file = chance.choice(_evidence(path))
    size = file.stat().st_size
    os.truncate(file, chance.randrange(size) if size else 0)


def flip_a_bit(path: Path, chance: random.Random) -> None:
    file = chance.choice(_evidence(path))
    content = bytearray(file.read_bytes())
    if content:
        content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    file.write_bytes(content)


def replace_a_file_by_a_link(path: Path, chance: random.Random) -> None:
    file = chance.choice(_evidence(path))
    kept = path.parent / "outside"
    shutil.copyfile(file, kept)
    file.unlink()
    file.symlink_to(kept)


def remove_the_sums(path: Path, chance: random.Random) -> None:
    (path / "SHA256SUMS").unlink(missing_ok=True)


def remove_a_sum(path: Path, chance: random.Random) -> None:
    file = path / "SHA256SUMS"
    lines = file.read_bytes().splitlines(keepends=True) if file.is_file() else []
    if lines:
        lines.pop(chance.randrange(len(lines)))
    file.write_bytes(b"".join(lines))


def add_a_file(path: Path, chance: random.Random) -> None:
    place = path / chance.choice(["logs", "telemetry", "telemetry/n00"])
    place.mkdir(exist_ok=True, parents=True)
    (place / "added").write_text("more\n")


def replace_a_folder_by_a_link(path: Path, chance: random.Random) -> None:
    folder = path / chance.choice(["logs", "telemetry"])
    moved = path.parent / f"moved-{folder.name}"
    if folder.is_dir() and not folder.is_symlink() and not moved.exists():
        folder.rename(moved)
        folder.symlink_to(moved)


DAMAGES: tuple[Damage, ...] = (
    drop_lines,
    double_a_line,
    swap_lines,
    move_a_line_to_another_file,
    make_a_line_unparsable,
    null_a_field,
    leave_out_a_field,
    alter_a_value,
    alter_the_header,
    delete_a_file,
    empty_a_file,
    truncate_a_file,
    flip_a_bit,
    replace_a_file_by_a_link,
    remove_the_sums,
    remove_a_sum,
    add_a_file,
    replace_a_folder_by_a_link,
)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The generated runs as directories, written once; nothing changes them."""
    folder = tmp_path_factory.mktemp("runs")
    return {
        name: write_run(
            folder / str(place), nodes=4, accelerators=1, faults=[fault.replace("gpu1", "gpu0") for fault in faults]
        )
        for place, (name, (_, faults)) in enumerate(RUNS.items())
    }


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of this machine: the one that HWLOTTERY_REAL_RUN names, or one of a few seconds made here."""
    named = os.environ.get("HWLOTTERY_REAL_RUN")
    if named:
        return Path(named)
    folder = tmp_path_factory.mktemp("real")
    profile = Path(__file__).parent / "profiles" / "tiny.yaml"
    command = ["run", "--profile", profile, "--policy", "prolog", "--scratch", folder, "--out", folder / "run"]
    subprocess.run([sys.executable, "-m", "hwlottery", *map(str, command)], check=False, capture_output=True)
    return folder / "run"


def signable_prolog() -> Policy:
    """What a few seconds can show, as if it could be signed: or the law would have nothing to hold."""
    text = load_policy("prolog").text.replace("signable: false", "signable: true")
    return policy_from_text(text, "prolog.yaml")


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
@settings(max_examples=7, deadline=None, suppress_health_check=SLOW_DISK)
@given(seed=st.integers(0, 2**32), name=st.sampled_from(sorted(RUNS)))
def test_damaged_files_never_make_a_run_better(
    tmp_path_factory: pytest.TempPathFactory, written: dict[str, Path], damage: Damage, seed: int, name: str
) -> None:
    after = judged_after(damage, seed, written[name], tmp_path_factory.mktemp("law"), None)
    assert_no_better(judged(written[name]), after, f"{damage.__name__} with seed {seed}")


def test_the_run_of_this_machine_could_be_signed_by_what_a_few_seconds_show(real: Path) -> None:
    verdict = judged(real, signable_prolog())
    assert verdict is not None
    assert (verdict.verdict, verdict.signable) == ("GO", True), verdict.reasons


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
@settings(max_examples=6, deadline=None, suppress_health_check=SLOW_DISK)
@given(seed=st.integers(0, 2**32))
def test_damaged_files_of_a_real_run_never_make_it_better_and_are_noticed(
    tmp_path_factory: pytest.TempPathFactory, real: Path, damage: Damage, seed: int
) -> None:
    folder = tmp_path_factory.mktemp("law")
    before, policy = judged(real, signable_prolog()), signable_prolog()
    after = judged_after(damage, seed, real, folder, policy, keep=True)
    assert_no_better(before, after, f"{damage.__name__} with seed {seed}")
    if contents(folder / "run") != contents(real):
        assert after is None or not after.signable, f"{damage.__name__} with seed {seed} was not noticed"
    shutil.rmtree(folder)


def contents(path: Path) -> dict[str, bytes | str]:
    """What a run directory's evidence holds, links named as such."""
    return {
        file.relative_to(path).as_posix(): "a link" if file.is_symlink() else file.read_bytes()
        for file in sorted(path.rglob("*"))
        if (file.is_symlink() or file.is_file()) and file.name not in ("verdict.json", "report.html")
    }


def judged_after(
    damage: Damage, seed: int, path: Path, folder: Path, policy: Policy | None, *, keep: bool = False
) -> Verdict | None:
    """The verdict on a damaged copy, which sometimes is damaged twice."""
    copy = folder / "run"
    shutil.copytree(path, copy)
    chance = random.Random(seed)
    damage(copy, chance)
    if chance.random() < 0.3 and _whole(copy):
        chance.choice(DAMAGES)(copy, chance)
    after = judged(copy, policy)
    if not keep:
        shutil.rmtree(folder)
    return after


def _whole(path: Path) -> bool:
    """Whether a second damage can still read what the first has left."""
    try:
        for name in RECORD_FILES:
            [_fields(line) for line in (path / name).read_bytes().splitlines()]
        _fields((path / "run.json").read_bytes())
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return False
    return True


@pytest.mark.parametrize("name", [name for name, (word, _) in RUNS.items() if word in ("NO_GO", "INCONCLUSIVE")])
@pytest.mark.parametrize(
    "files", [("measurements.jsonl",), ("events.jsonl",), RECORD_FILES, (*RECORD_FILES, "run.json")]
)
def test_files_of_a_healthy_run_do_not_heal_another(
    written: dict[str, Path], tmp_path: Path, name: str, files: tuple[str, ...]
) -> None:
    copy = tmp_path / "run"
    shutil.copytree(written[name], copy)
    for file in files:
        shutil.copyfile(written["healthy"] / file, copy / file)
    after = judged(copy)
    assert after is None or not after.signable


def test_a_fault_altered_away_in_its_file_is_noticed(written: dict[str, Path], tmp_path: Path) -> None:
    copy = tmp_path / "run"
    shutil.copytree(written["wrong results on two nodes"], copy)
    file = copy / "measurements.jsonl"
    healed = re.sub(rb'"samples":\[[24]\.0\]', b'"samples":[0.0]', file.read_bytes())
    assert healed != file.read_bytes()
    file.write_bytes(healed)
    after = judged(copy)
    assert after is not None
    assert (after.verdict, after.signable) == ("INCONCLUSIVE", False)
    assert "measurements.jsonl: differs from its SHA-256" in after.reasons[0]


def test_what_is_derived_can_be_deleted_or_made_again_without_harm(written: dict[str, Path], tmp_path: Path) -> None:
    copy = tmp_path / "run"
    shutil.copytree(written["one slow accelerator"], copy)
    (copy / "verdict.json").write_text("{}")
    (copy / "report.html").write_text("<p>")
    before = judged(written["one slow accelerator"])
    assert before is not None
    assert before == judged(copy)
