"""A run beside an earlier one: regressions apart from noise, by hardware and not by name."""

import hashlib
import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec
import pytest
from generated_runs import as_run, make_run, write_records, write_run
from hypothesis import given, settings
from hypothesis import strategies as st

from hwlottery.cluster.job_script import slurm_script
from hwlottery.evidence import (
    AnyRecord,
    BaselineRun,
    Fact,
    Measurement,
    Run,
    RunHeader,
    RunWriter,
    read_run,
)
from hwlottery.evidence.reading import sha256_of
from hwlottery.runner.once import alone
from hwlottery.scoring import Finding, Verdict, doubts_of, score_run, verdict_json
from hwlottery.scoring.baselines import counterparts

MEMORY = (
    "{check: a, metric: memory.copy, each: accelerator, category: memory, excludable: true, "
    "layers: {baseline: {warn: 0.95, fail: 0.90}}}"
)
PRODUCTS = MEMORY.replace("memory.copy", "matmul.tflops").replace("category: memory", "category: compute")
Change = Callable[[AnyRecord], AnyRecord]


def policy(check: str) -> str:
    return (
        "name: mine\nsignable: false\nchecks:\n"
        "  - {check: whole, rule: evidence.complete, each: cluster, category: evidence}\n"
        f"  - {check}\n"
    )


def made(check: str = MEMORY, change: Change = lambda record: record, **wanted: object) -> Run:
    header, records = make_run(policy_text=policy(check), **{"accelerators": 2, **wanted})  # type: ignore[arg-type]
    return as_run(header, [change(record) for record in records])


def on(verdict: Verdict, subject: str) -> Finding:
    return next(f for f in verdict.findings if f.check == "a" and f.subject == subject)


def times(metric: str, subject: str, factor: float, spread: float = 0.0) -> Change:
    """A change that scales the samples of one figure, and spreads them."""

    def change(record: AnyRecord) -> AnyRecord:
        if not isinstance(record, Measurement) or (record.metric, record.subject) != (metric, subject):
            return record
        count = len(record.samples or ())
        wide = [1 + spread * (2 * place / max(1, count - 1) - 1) for place in range(count)]
        return msgspec.structs.replace(
            record, samples=tuple(s * factor * w for s, w in zip(record.samples or (), wide, strict=True))
        )

    return change


def test_what_fell_and_fell_again_in_a_retest_is_a_regression() -> None:
    before, now = made(PRODUCTS), made(PRODUCTS, faults=["slow@n01/gpu1=0.78"], seed=2)
    verdict = score_run(now, baseline=before)
    found = on(verdict, "n01/gpu1")
    assert (found.result, found.layer, found.excludes) == ("fail", "baseline", "n01")
    assert found.detail.startswith("78.")
    assert on(verdict, "n01/gpu0").result == "pass"
    assert verdict.exclude == ("n01",)


def test_a_drop_seen_once_blames_nobody_until_it_is_seen_again() -> None:
    found = on(score_run(made(change=times("memory.copy", "n01/gpu1", 0.6)), baseline=made()), "n01/gpu1")
    assert (found.result, found.reason) == ("not_measured", "not_retested")
    assert "seen once" in found.detail
    assert "Retest n01/gpu1" in found.action


def test_a_drop_that_was_fine_in_the_retest_comes_and_goes() -> None:
    now = made(PRODUCTS, faults=["intermittent@n01/gpu1"])
    found = on(score_run(now, baseline=made(PRODUCTS)), "n01/gpu1")
    assert (found.result, found.detail[:12]) == ("warn", "intermittent")


def test_a_drop_within_noise_decides_nothing() -> None:
    noisy = times("memory.copy", "n01/gpu1", 0.89, spread=0.9)
    found = on(score_run(made(change=noisy), baseline=made(change=noisy_too)), "n01/gpu1")
    assert (found.result, found.reason) == ("not_measured", "no_power")


def test_on_cpus_runs_differ_so_much_that_half_the_speed_decides_nothing() -> None:
    """Two smoke runs of one shared machine, 22 minutes apart: 49 % of the products by one shape, 216 % by another."""
    half = made(device="cpu", change=times("memory.copy", "n01/slot1", 0.49))
    found = on(score_run(half, baseline=made(device="cpu")), "n01/slot1")
    assert (found.result, found.reason) == ("not_measured", "no_power")
    assert "only more runs would tell" in found.detail


def noisy_too(record: AnyRecord) -> AnyRecord:
    return times("memory.copy", "n01/gpu1", 1.0, spread=0.9)(record)


def test_without_a_baseline_nothing_is_held_against_one() -> None:
    verdict = score_run(made(change=times("memory.copy", "n01/gpu1", 0.5)))
    assert on(verdict, "n01/gpu1").result == "pass"
    assert verdict.compared is None
    assert any("no baseline" in line for line in verdict.not_judged)


def test_what_the_baseline_never_measured_is_not_measured() -> None:
    verdict = score_run(made(nodes=5), baseline=made(nodes=4))
    assert (on(verdict, "n04/gpu0").result, on(verdict, "n04/gpu0").reason) == ("not_measured", "no_reference")
    assert on(verdict, "n03/gpu0").result == "pass"
    assert verdict.compared is not None
    assert verdict.compared.baseline.changes == ("the baseline has not seen n04",)


def test_a_part_of_the_cluster_is_told_and_figures_of_the_whole_are_not_compared() -> None:
    check = MEMORY.replace("memory.copy", "burn_in.tokens_per_second").replace("category: memory", "category: burn_in")
    check = check.replace("each: accelerator", "each: cluster").replace("excludable: true, ", "")
    verdict = score_run(made(check, nodes=2), baseline=made(check, nodes=4))
    found = on(verdict, "cluster")
    assert (found.result, found.detail) == ("pass", "not judged against the baseline: the baseline is of other nodes")
    assert verdict.compared is not None
    assert verdict.compared.baseline.changes == ("of the baseline's 4 nodes n02, n03 took no part",)


def test_slurm_starts_a_recheck_where_the_words_say_so() -> None:
    script = slurm_script(nodes=2, gpus_per_node=8, time="1", partition=None, run=("recheck", "--baseline", "a b"))
    assert "-m hwlottery recheck --gpus-per-node 8 --baseline 'a b'" in script


def test_figures_by_another_method_are_not_compared() -> None:
    before = made()
    before.plans = [msgspec.structs.replace(plan, method="0") for plan in before.plans]
    found = on(score_run(made(), baseline=before), "n01/gpu1")
    assert (found.result, found.reason) == ("not_measured", "no_reference")
    assert "another method (memory 0, now memory 1)" in found.detail


def renamed(record: AnyRecord, names: dict[str, str]) -> AnyRecord:
    """The record with nodes under other names, their hardware as it was."""
    text = msgspec.json.encode(record).decode()
    for old in names:
        text = text.replace(f'"{old}"', f'"@{old}"').replace(f'"{old}/', f'"@{old}/')
    for old, new in names.items():
        text = text.replace(f"@{old}", new)
    return msgspec.json.decode(text, type=type(record))


def test_nodes_are_matched_by_their_hardware_and_not_by_their_names() -> None:
    """n00 was half as fast as n01 before; now their names have changed places, and nothing has fallen."""
    slow = times("memory.copy", "n00/gpu0", 0.5)
    before = made(change=slow)
    now = made(change=lambda record: renamed(slow(record), {"n00": "n01", "n01": "n00"}))
    verdict = score_run(now, baseline=before)
    assert {f.result for f in verdict.findings if f.check == "a"} == {"pass"}
    assert verdict.compared is not None
    assert verdict.compared.baseline.changes == ("n00 was n01", "n01 was n00")


def test_other_hardware_behind_a_name_and_new_software_are_named_as_suspects() -> None:
    header, records = make_run(policy_text=policy(PRODUCTS), accelerators=2, faults=["slow@n01/gpu1=0.78"])
    segment = header.segments[0]
    software = {node: {"torch": "2.14.0"} for node in segment.software}
    header = msgspec.structs.replace(header, segments=(msgspec.structs.replace(segment, software=software),))
    changed = [
        msgspec.structs.replace(r, value="f" * 16)
        if isinstance(r, Fact) and (r.subject, r.key) == ("n01", "hardware.identity")
        else msgspec.structs.replace(r, value=500.0)
        if isinstance(r, Fact) and (r.subject, r.key) == ("n01/gpu1", "accelerator.power_limit")
        else r
        for r in records
    ]
    verdict = score_run(as_run(header, changed), baseline=made(PRODUCTS))
    assert verdict.compared is not None
    worst = verdict.compared.changes[0]
    assert (worst.subject, worst.told, worst.decided) == ("n01/gpu1", "worse", "fail")
    assert worst.suspects == (
        "the hardware behind n01 changed",
        "torch 2.13.0 → 2.14.0",
        "accelerator.power_limit 700 → 500",
    )
    assert "changed since: the hardware behind n01 changed" in on(verdict, "n01/gpu1").detail


TEMPLATE = make_run(nodes=1, accelerators=1)[0]


@settings(deadline=None)
@given(st.dictionaries(st.sampled_from("abcdef"), st.sampled_from("1234"), max_size=6), st.data())
def test_a_node_is_never_another_ones_counterpart_while_its_own_hardware_is_known(
    before: dict[str, str], data: st.DataObject
) -> None:
    now = data.draw(st.dictionaries(st.sampled_from("abcdef"), st.sampled_from("1234"), max_size=6))

    def header(names: Iterable[str]) -> RunHeader:
        promised = tuple(msgspec.structs.replace(TEMPLATE.promised[0], node=name) for name in names)
        return msgspec.structs.replace(TEMPLATE, promised=promised)

    found = counterparts(header(now), now, header(before), before)
    for node, other in found.items():
        owners = [name for name, identity in before.items() if identity == now[node]]
        if len(owners) == 1 and list(now.values()).count(now[node]) == 1:
            assert other == owners[0]
        else:
            assert other == node


def test_a_value_that_fell_is_measured_again_before_it_is_judged() -> None:
    before = made()
    facts = {(fact.subject, fact.key): fact.value for fact in before.facts}
    params = next(m.params for m in before.measurements if m.metric == "memory.copy")
    doubted = doubts_of(before.header, facts, before)
    assert doubted("memory.copy", "n01/gpu1", params, 2950 * 0.85)
    assert not doubted("memory.copy", "n01/gpu1", params, 2950 * 0.97)
    assert not doubts_of(before.header, facts)("memory.copy", "n01/gpu1", params, 2950 * 0.85)


# --- the copy that a run carries ----------------------------------------------------------------------------------


@pytest.fixture
def rechecked(tmp_path: Path) -> Path:
    """A generated run on disk that carries the earlier one it is held against."""
    header, records = make_run(policy_text=policy(PRODUCTS), accelerators=2)
    before = write_records(tmp_path / "before", header, records)
    named = BaselineRun(run_id=header.run_id, sha256=sha256_of(before / "SHA256SUMS"))
    header, records = make_run(policy_text=policy(PRODUCTS), accelerators=2, faults=["slow@n01/gpu1=0.78"], seed=2)
    writer = RunWriter.create(tmp_path / "now", msgspec.structs.replace(header, baseline=named))
    writer.keep_baseline(read_run(before))
    writer.write(records)
    writer.finish()
    shutil.rmtree(before)
    return tmp_path / "now"


def test_a_recheck_is_judged_again_from_its_copy_alone(rechecked: Path) -> None:
    run = read_run(rechecked)
    assert run.problems == []
    verdict = score_run(run)
    assert on(verdict, "n01/gpu1").result == "fail"
    assert verdict_json(verdict) == verdict_json(score_run(read_run(rechecked)))


def test_nothing_can_be_judged_beside_a_copy_that_is_gone_or_altered(rechecked: Path) -> None:
    (rechecked / "baseline" / "measurements.jsonl").write_bytes(b"")
    run = read_run(rechecked)
    assert run.baseline is None
    assert score_run(run).verdict == "INCONCLUSIVE"
    shutil.rmtree(rechecked / "baseline")
    assert any(problem.place == "baseline" for problem in read_run(rechecked).problems)
    assert score_run(read_run(rechecked)).verdict == "INCONCLUSIVE"


def test_a_copy_of_another_run_with_sums_of_its_own_is_refused(rechecked: Path, tmp_path: Path) -> None:
    other = write_run(tmp_path / "other", policy_text=policy(PRODUCTS), accelerators=2, seed=9)
    for name in ("run.json", "plan.jsonl", "facts.jsonl", "measurements.jsonl", "events.jsonl", "SHA256SUMS"):
        shutil.copyfile(other / name, rechecked / "baseline" / name)
    lines = [
        f"{hashlib.sha256((rechecked / name).read_bytes()).hexdigest()}  {name}"
        for line in (rechecked / "SHA256SUMS").read_text().splitlines()
        for name in [line.split("  ", 1)[1]]
    ]
    (rechecked / "SHA256SUMS").write_text("\n".join(lines) + "\n")
    run = read_run(rechecked)
    assert run.baseline is None
    assert "another run than run.json names" in str(run.problems)


def test_a_linked_copy_is_not_followed(rechecked: Path, tmp_path: Path) -> None:
    (rechecked / "baseline").rename(tmp_path / "elsewhere")
    (rechecked / "baseline").symlink_to(tmp_path / "elsewhere")
    assert read_run(rechecked).baseline is None
    assert score_run(read_run(rechecked)).verdict == "INCONCLUSIVE"


# --- the command --------------------------------------------------------------------------------------------------

PROFILE = Path(__file__).parent / "profiles" / "tiny.yaml"
LOADED = (0, 4)  # a machine that does other things too may be too noisy to tell anything
OF_PRODUCTS = """name: mine
signable: false
checks:
  - {check: whole, rule: evidence.complete, each: cluster, category: evidence}
  - {check: node.responds, rule: node.responds, each: node, category: evidence}
  - check: a
    metric: matmul.tflops
    where: {phase: burst}
    each: accelerator
    category: compute
    layers: {baseline: {warn: 0.02, fail: 0.01}}
"""


def hwlottery(*arguments: object, cwd: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "hwlottery", *map(str, arguments)],
        capture_output=True, text=True, cwd=cwd, timeout=150, check=False,
    )  # fmt: skip


@pytest.fixture(scope="module")
def accepted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A real run of the tiny profile, to hold others against."""
    folder = tmp_path_factory.mktemp("accepted")
    (folder / "mine.yaml").write_text(OF_PRODUCTS)
    given = ("--profile", PROFILE, "--policy", "mine.yaml", "--only", "matmul", "--price", "2", "--provider", "P")
    result = hwlottery("run", *given, "--out", "run", cwd=folder)
    assert result.returncode == 0, result.stdout + result.stderr
    return folder / "run"


def test_recheck_measures_the_same_again_and_says_what_changed(accepted: Path) -> None:
    folder = accepted.parent
    result = hwlottery(
        "recheck",
        "--baseline",
        accepted,
        "--json",
        "--junit",
        "checks.xml",
        "--prometheus",
        "run.prom",
        "--out",
        "now",
        cwd=folder,
    )
    assert result.returncode in LOADED, result.stderr
    verdict = json.loads(result.stdout)
    assert {"GO": 0, "INCONCLUSIVE": 4}[verdict["verdict"]] == result.returncode
    assert verdict["compared"]["baseline"]["run_id"] == read_run(accepted).header.run_id
    assert verdict["compared"]["figures"] == 2
    assert verdict["compared"]["baseline"]["changes"] == []
    assert "Beside " in result.stderr
    assert 'hwlottery_verdict{verdict="GO"}' in (folder / "run.prom").read_text()
    assert "<testsuite" in (folder / "checks.xml").read_text()
    header = read_run(folder / "now").header
    assert (header.only, header.price_per_gpu_hour, header.provider) == (("matmul",), 2.0, "P")
    assert read_run(folder / "now").problems == []


@pytest.mark.slow
def test_a_quiet_recheck_prints_nothing_and_exits_with_the_verdict(accepted: Path) -> None:
    result = hwlottery("recheck", "--baseline", accepted, "--quiet", "--out", "quiet", cwd=accepted.parent)
    assert (result.stdout, result.stderr) == ("", "")
    assert result.returncode in LOADED


def test_two_rechecks_against_one_baseline_do_not_run_at_once(accepted: Path) -> None:
    with alone(str(accepted.resolve())):
        result = hwlottery("recheck", "--baseline", accepted, "--out", "second", cwd=accepted.parent)
    assert result.returncode == 2
    assert "another recheck" in result.stderr
    assert not (accepted.parent / "second").exists()


def test_a_policy_that_compares_nothing_is_refused(accepted: Path) -> None:
    result = hwlottery("recheck", "--baseline", accepted, "--policy", "prolog", "--dry-run", cwd=accepted.parent)
    assert result.returncode == 2
    assert "no baseline layer" in result.stderr


def test_a_baseline_that_is_not_whole_is_refused(accepted: Path, tmp_path: Path) -> None:
    shutil.copytree(accepted, tmp_path / "torn")
    (tmp_path / "torn" / "events.jsonl").write_text("")
    result = hwlottery("recheck", "--baseline", "torn", "--dry-run", cwd=tmp_path)
    assert result.returncode == 2
    assert "is not whole" in result.stderr
