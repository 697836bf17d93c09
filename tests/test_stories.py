"""Public stories of clusters gone wrong, as far as the verdict decides them today; docs/stories.md has them all."""

from collections.abc import Callable

import msgspec
import pytest
from generated_runs import as_run, make_run

from hwlottery.evidence import AnyRecord, Fact, Measurement
from hwlottery.scoring import Finding, Verdict, score_run

Change = Callable[[AnyRecord], AnyRecord]


def verdict_of(change: Change | None = None, *, faults: tuple[str, ...] = (), nodes: int = 4) -> Verdict:
    header, records = make_run(nodes=nodes, accelerators=2, faults=faults)
    return score_run(as_run(header, records if change is None else [change(record) for record in records]))


def not_passed(verdict: Verdict) -> dict[tuple[str, str], Finding]:
    found = (f for f in verdict.findings if f.result in ("warn", "fail"))
    return {(f.check, f.subject): f for f in found}


def measured_as(metric: str, subject: str, value: float) -> Change:
    def change(record: AnyRecord) -> AnyRecord:
        hit = isinstance(record, Measurement) and (record.metric, record.subject) == (metric, subject)
        return msgspec.structs.replace(record, samples=(value,)) if hit else record

    return change


def fact_as(key: str, subject: str, value: int) -> Change:
    def change(record: AnyRecord) -> AnyRecord:
        hit = isinstance(record, Fact) and (record.key, record.subject) == (key, subject)
        return msgspec.structs.replace(record, value=value) if hit else record

    return change


def test_04_gpudirect_that_is_off_is_said_of_the_node() -> None:
    verdict = verdict_of(faults=("no_gpudirect@n01",))
    assert not_passed(verdict)["fabric.network", "n01"].result == "warn"
    assert verdict.exclude == ()


def test_05_a_fallback_to_sockets_takes_the_node_out_and_says_that_the_fabric_is_untested() -> None:
    verdict = verdict_of(faults=("sockets@n01",))
    assert (verdict.verdict, verdict.exclude) == ("CONDITIONAL", ("n01",))
    assert "the RDMA fabric itself was not tested" in not_passed(verdict)["fabric.network", "n01"].detail


@pytest.mark.parametrize(
    ("key", "value", "check"),
    [("shm.size", 64 * 2**20, "limits.shared_memory"), ("limit.memlock", 8192 * 1024, "limits.memlock")],
)
def test_06_the_limits_of_a_container_are_named_and_no_device_is_blamed(key: str, value: int, check: str) -> None:
    verdict = verdict_of(fact_as(key, "n01", value))
    assert set(not_passed(verdict)) == {(check, "n01")}
    assert verdict.exclude == ()


def test_07_nvlinks_that_are_down_fail_their_accelerator() -> None:
    verdict = verdict_of(measured_as("topology.nvlinks_active", "n01/gpu1", 16.0))
    assert (verdict.verdict, verdict.exclude) == ("CONDITIONAL", ("n01",))
    assert set(not_passed(verdict)) == {("topology.nvlinks", "n01/gpu1")}


def test_08_one_hot_accelerator_is_named_with_its_throttling() -> None:
    verdict = verdict_of(faults=("throttled@n01/gpu1=0.4", "slow@n01/gpu1=0.6"))
    assert (verdict.verdict, verdict.exclude) == ("CONDITIONAL", ("n01",))
    assert not_passed(verdict)["health.throttled", "n01/gpu1"].action.startswith("Have the cooling")


def test_09_a_pending_row_remap_takes_the_node_out_and_asks_for_a_reset() -> None:
    verdict = verdict_of(measured_as("health.remap_pending", "n01/gpu1", 1.0))
    assert (verdict.verdict, verdict.exclude) == ("CONDITIONAL", ("n01",))
    assert not_passed(verdict)["health.remap", "n01/gpu1"].action.startswith("Have the accelerator reset")


def test_17_a_clock_that_is_off_warns_of_its_node_alone() -> None:
    verdict = verdict_of(measured_as("clock.offset", "n01", 7.0))
    assert set(not_passed(verdict)) == {("clock.agrees", "n01")}
    assert verdict.exclude == ()


def test_18_pairs_above_their_nics_are_no_baseline_and_the_last_node_of_a_falling_series_is_not_blamed() -> None:
    def tree(record: AnyRecord) -> AnyRecord:
        if not (isinstance(record, Measurement) and record.metric == "all_reduce.busbw"):
            return record
        if "~" in record.subject:
            return msgspec.structs.replace(record, samples=(250.0,) * 20)
        falls = record.subject == "cluster"
        return (
            msgspec.structs.replace(record, samples=tuple(0.41 * one for one in record.numbers())) if falls else record
        )

    verdict = verdict_of(tree, nodes=6)
    pairs = [f for f in verdict.findings if f.check == "pairs.line_rate"]
    assert len(pairs) == 15
    assert all((f.result, f.reason) == ("not_measured", "inflated") and "NCCL_ALGO=Ring" in f.action for f in pairs)
    assert verdict.verdict == "INCONCLUSIVE", "the story asks for none until the ring was measured"
    assert verdict.exclude == (), "nobody is blamed"
    blamed = [f.subject for f in verdict.findings if f.result in ("warn", "fail") and f.subject.startswith("n05")]
    assert all("~" in subject for subject in blamed)
    assert any(reason.startswith("All nodes together reduce at") for reason in verdict.reasons)
