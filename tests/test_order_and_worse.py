"""The order of records says nothing, and what was measured worse is judged no better."""

import random
from collections.abc import Callable

import msgspec
import pytest
from generated_runs import as_run, make_run, write_run
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hwlottery.evidence import AnyRecord, Measurement, metric, read_run
from hwlottery.evidence.record_file import RECORD_FILES
from hwlottery.evidence.writing import write_checksums
from hwlottery.scoring import Verdict, score_run, verdict_json

FAULTS = ("slow@n01/gpu1=0.78", "slow_link@n00~n02=0.6", "slow_rail@n01/rail1=0.6", "nan@n02/gpu0")
# Every slow fault that a generated run can have, at the severity that is drawn.
SLOWER = ("slow@n01/gpu1", "slow_memory@n02/gpu0", "slow_node@n01", "slow_link@n00~n02", "slow_rail@n01/rail1")
# What was doubtful becomes a certain fault that can be excluded when it is worse: neither is lighter than the other.
GRAVITY = {"GO": 0, "CONDITIONAL": 1, "INCONCLUSIVE": 1, "NO_GO": 2}


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 2**32))
def test_lines_in_another_order_give_the_same_verdict_byte_for_byte(
    tmp_path_factory: pytest.TempPathFactory, seed: int
) -> None:
    path = write_run(tmp_path_factory.mktemp("order") / "run", nodes=3, accelerators=2, faults=FAULTS)
    before = verdict_json(score_run(read_run(path)))
    chance = random.Random(seed)
    for name in RECORD_FILES:
        lines = (path / name).read_bytes().splitlines(keepends=True)
        chance.shuffle(lines)
        (path / name).write_bytes(b"".join(lines))
    write_checksums(path)
    run = read_run(path)
    assert run.problems == [], "numbers define the order, whatever that of the lines"
    assert verdict_json(score_run(run)) == before


def scaled(record: AnyRecord, worse: float) -> AnyRecord:
    """A measurement worse by that share, in whichever direction is worse of its metric; a share stays one."""
    if not isinstance(record, Measurement):
        return record
    down = metric(record.metric).better == "higher"

    def change(number: float) -> float:
        return number * (1 - worse) if down else number * (1 + worse)

    parts = {name: getattr(record, name) for name in ("samples", "quantiles")}
    changed = {name: tuple(map(change, numbers)) for name, numbers in parts.items() if numbers is not None}
    value = {} if record.value is None else {"value": change(record.value)}
    return msgspec.structs.replace(record, **changed, **value)


def judged(change: Callable[[AnyRecord], AnyRecord]) -> Verdict:
    header, records = make_run(nodes=3, accelerators=2, seed=7)
    return score_run(as_run(header, [change(record) for record in records]))


WEIGHED = ("matmul.tflops", "memory.copy", "all_reduce.busbw", "burn_in.model_tflops", "memory.host_to_device")


@settings(max_examples=20, deadline=None)
@given(st.sampled_from(WEIGHED), st.sampled_from(["n00", "n01/gpu1", ""]), st.floats(0.0, 0.9), st.floats(0.0, 0.9))
def test_a_measurement_made_worse_never_raises_the_index_nor_lightens_the_verdict(
    name: str, subject: str, one: float, other: float
) -> None:
    less, more = sorted((one, other))

    def worse_by(share: float) -> Callable[[AnyRecord], AnyRecord]:
        def change(record: AnyRecord) -> AnyRecord:
            hit = isinstance(record, Measurement) and record.metric == name and record.subject.startswith(subject)
            return scaled(record, share) if hit else record

        return change

    before, after = judged(worse_by(less)), judged(worse_by(more))
    assert GRAVITY[after.verdict] >= GRAVITY[before.verdict], (before.reasons, after.reasons)
    assert set(after.exclude) >= set(before.exclude) or not after.signable
    if before.index is not None and after.index is not None:
        assert after.index <= before.index


@pytest.mark.parametrize("fault", SLOWER)
def test_a_graver_fault_is_never_judged_lighter(fault: str) -> None:
    gravities = []
    for severity in (0.99, 0.9, 0.8, 0.6, 0.3):
        header, records = make_run(nodes=4, accelerators=2, faults=[f"{fault}={severity}"], seed=3)
        gravities.append(GRAVITY[score_run(as_run(header, records)).verdict])
    assert gravities == sorted(gravities)
    assert gravities[-1] > 0, "at a third of its speed nothing passes"
