"""The economics of a run: what is measured, what is assumed and said to be, what findings cost, the user's files."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner, Result
from generated_runs import as_run, make_run, write_run

from hwlottery.cli import cli
from hwlottery.evidence import AnyRecord, Document, Measurement, NotMeasured, RunHeader
from hwlottery.scoring import load_policy, policy_from_text, score_run, verdict_json
from hwlottery.scoring.derived import Figures
from hwlottery.scoring.economics import economics
from hwlottery.scoring.facts import Facts
from hwlottery.scoring.goodput import daly_interval_s, goodput, job_mtbf_s
from hwlottery.scoring.projection import Situation, outlook, spares_needed
from hwlottery.scoring.statistics import projected_rate
from hwlottery.scoring.values import Values
from hwlottery.scoring.verdict import Economics

RENT = 2.5 * 730  # of an accelerator a month


def money(*, costs: str = "", policy: str | None = None, change: Any = None, **wanted: Any) -> Economics:
    run_flops = wanted.pop("run_flops", None)
    header, records = make_run(**wanted)
    document = Document(name="costs.yaml", sha256="0" * 64, text=costs) if costs else None
    header = msgspec.structs.replace(header, run_flops=run_flops, costs=document)
    judged = policy_from_text(policy, "test") if policy else None
    return score_run(as_run(header, [change(record) for record in records] if change else records), judged).economics


def metric_at(name: str, value: float, subject: str | None = None) -> Any:
    def change(record: AnyRecord) -> AnyRecord:
        same = isinstance(record, Measurement) and record.metric == name and subject in (None, record.subject)
        return msgspec.structs.replace(record, samples=(value,) * 20) if same else record

    return change


def situation(found: Economics) -> Situation:
    assert found.situation is not None
    return found.situation


def test_every_figure_is_the_outlook_of_the_situation_that_stands_beside_it() -> None:
    found = money(run_flops=1e24)
    at = situation(found)
    assert (at.nodes, at.accelerators, at.paid_accelerators) == (4, 32.0, 32.0)
    assert at.recovery_s == pytest.approx(600 + 5.2, abs=0.5), "noticed as assumed, loaded as measured"
    out = outlook(at)
    for figure, value in [
        (found.goodput, out.goodput),
        (found.usd_per_pflop_day, out.usd_per_pflop_day),
        (found.effective_throughput, out.effective),
        (found.run_s, out.run_s),
        (found.run_usd, out.run_usd),
        (found.checkpoint_interval_s, out.interval_s),
    ]:
        assert figure is not None
        assert figure.value == pytest.approx(value, rel=1e-5)
        assert (figure.low or 0) < (figure.value or 0) < (figure.high or 0)


def test_goodput_is_dalys_with_the_slowest_save_and_the_projected_rate() -> None:
    found = money()
    at, rate = situation(found), projected_rate(0, 4 * 2.0)
    assert at.failures_per_node_day == pytest.approx(rate.point, rel=0.01)
    assert at.save_s == pytest.approx(12, rel=0.05)
    mtbf = job_mtbf_s(4, at.failures_per_node_day)
    assert found.goodput is not None
    assert found.goodput.value == pytest.approx(goodput(at.save_s, mtbf, at.recovery_s + at.wait_s), rel=1e-5)
    assert found.checkpoint_interval_s is not None
    assert found.checkpoint_interval_s.value == pytest.approx(daly_interval_s(at.save_s, mtbf), rel=1e-5)
    assert found.longest_save_s is not None
    assert found.longest_save_s.value == pytest.approx(0.05**2 * mtbf / 2, rel=1e-5)
    assert "as measured" in found.goodput.basis
    assert "1 h for another node (a cold spare) assumed" in found.goodput.basis


def test_three_ways_to_replace_a_node_are_shown_and_one_is_assumed() -> None:
    ways = {way.spare: way for way in money(nodes=64, accelerators=1).replacements}
    assert [(way.spare, way.wait_hours, way.source, way.assumed) for way in ways.values()] == [
        ("hot", 0.0, "it stands ready", False),
        ("cold", 1.0, "assumed", True),
        ("none", 24.0, "assumed", False),
    ]
    shares = [ways[name].goodput.value or 0 for name in ("hot", "cold", "none")]
    assert shares == sorted(shares, reverse=True)
    assert shares[2] < 0.9
    prices = {name: way.usd_per_pflop_day.value or 0 for name, way in ways.items() if way.usd_per_pflop_day}
    assert ways["hot"].spare_nodes == 1
    assert [name for name, way in ways.items() if way.cheapest] == ["cold"]
    assert prices["cold"] < prices["hot"] < prices["none"]


def test_a_hot_spare_is_paid_for_and_pays_from_a_wait_on() -> None:
    found = money(nodes=16)
    hot, cold, none = found.replacements
    assert (hot.spare_nodes, cold.spare_nodes, none.spare_nodes) == (1, 0, 0)
    usd = [way.usd_per_pflop_day.value or 0 for way in (hot, cold, none) if way.usd_per_pflop_day]
    goodput = [way.goodput.value or 0 for way in (hot, cold, none)]
    assert usd[0] / usd[1] == pytest.approx(17 / 16 * goodput[1] / goodput[0], rel=1e-4)
    assert usd[1] / usd[2] == pytest.approx(goodput[2] / goodput[1], rel=1e-4)
    pays = found.hot_spare_pays_from_s
    assert pays is not None
    for hours, cheapest in (((pays.value or 0) / 3600 * 0.9, "none"), ((pays.value or 0) / 3600 * 1.1, "hot")):
        costs = f"cold_spare_hours: 2000\nreplacement_hours: {hours}\n"
        ways = money(nodes=16, costs=costs).replacements
        assert [way.spare for way in ways if way.cheapest] == [cheapest]
    stated = money(nodes=16, costs="spare: hot\n")
    assert situation(stated).spare_nodes == 1
    assert stated.usd_per_pflop_day == stated.replacements[0].usd_per_pflop_day
    assert stated.effective_throughput is not None
    assert "128 of 136 paid accelerators" in stated.effective_throughput.basis
    assert "with 1 spare node" in (stated.usd_per_pflop_day.basis if stated.usd_per_pflop_day else "")


def test_replacement_times_come_from_the_file_of_costs_before_the_contract_before_an_assumption() -> None:
    contract = load_policy("contract").text
    by_contract = money(policy=contract).replacements[2]
    assert (by_contract.wait_hours, by_contract.source) == (24.0, "the policy's terms")
    costs = "spare: none\nreplacement_hours: 48\nrecovery_minutes: 20\n"
    found = money(policy=contract, costs=costs)
    assert (found.replacements[2].wait_hours, found.replacements[2].source) == (48.0, "the file of costs")
    assert [way.assumed for way in found.replacements] == [False, False, True]
    assert found.goodput == found.replacements[2].goodput
    assert situation(found).recovery_s == 1200.0
    assert situation(found).wait_s == 48 * 3600


def test_a_load_that_was_not_measured_is_assumed_and_said_to_be() -> None:
    def without_load(record: AnyRecord) -> AnyRecord:
        load = isinstance(record, Measurement) and record.metric == "checkpoint.read_back"
        return (
            NotMeasured(metric=record.metric, subject=record.subject, reason="died", trial=record.trial)
            if load
            else record
        )

    found = money(change=without_load)
    assert situation(found).recovery_s == 900.0
    assert found.goodput is not None
    assert "5 to load, assumed" in found.goodput.basis


def test_spares_are_counted_for_as_long_as_a_node_is_away_with_their_rent() -> None:
    found = money(nodes=64, accelerators=1, costs="replacement_hours: 72\n")
    at = situation(found)
    assert found.spares is not None
    assert found.spares.value == spares_needed(64, at.failures_per_node_day, 72)
    assert (found.spares.low or 0) <= (found.spares.value or 0) <= (found.spares.high or 0)
    assert "USD a month for" in found.spares.basis


def test_other_costs_raise_the_price_and_are_said() -> None:
    plain = money(run_flops=1e24)
    dear = money(run_flops=1e24, costs=f"storage_usd_per_month: {32 * RENT}\nsetup_hours: 73\nrental_months: 1\n")
    assert plain.usd_per_pflop_day is not None
    assert dear.usd_per_pflop_day is not None
    assert dear.usd_per_pflop_day.value == pytest.approx((plain.usd_per_pflop_day.value or 0) * 2 / 0.9, rel=1e-4)
    assert "58,400 USD a month of storage, egress and support" in dear.usd_per_pflop_day.basis
    assert "73 h of 1 months to set up" in dear.usd_per_pflop_day.basis


def test_without_a_price_there_is_time_but_no_money() -> None:
    found = money(price=None, run_flops=1e24)
    assert found.run_s is not None
    assert (found.run_usd, found.usd_per_pflop_day, found.test_usd, found.findings_usd_per_month) == (None,) * 4
    assert found.findings == ()
    assert found.test_node_hours == pytest.approx(4 * 48, rel=0.05)
    assert any("--price" in line for line in found.missing)


def test_a_price_of_gpus_is_no_price_of_cpus() -> None:
    found = money(device="cpu", nodes=1, accelerators=2)
    assert found.usd_per_pflop_day is None
    assert any("none was rented" in line for line in found.missing)


def test_the_test_itself_costs_its_node_hours() -> None:
    found = money()
    assert found.test_usd == pytest.approx((found.test_node_hours or 0) * 8 * 2.5, rel=1e-4)


def test_a_node_that_is_taken_out_costs_its_rent_and_the_total_is_the_sum() -> None:
    found = money(faults=["slow@n01/gpu1=0.7", "ecc@n02/gpu0=1"], nodes=32, accelerators=2)
    costs = {cost.subject: cost for cost in found.findings}
    assert set(costs) == {"n01", "n02"}
    assert costs["n01"].usd.value == pytest.approx(2 * RENT)
    assert costs["n01"].usd.basis == (
        "taken out: 2 accelerators paid for at 2.5 USD an hour, 730 h a month that nobody uses"
    )
    assert found.findings_usd_per_month == pytest.approx(4 * RENT)


@pytest.mark.parametrize(
    ("excluded", "rent"),
    [
        (("n01",), {"n01": 8}),
        (("n01/gpu3",), {"n01": 8}),
        (("n01", "n01/gpu3"), {"n01": 8}),
        (("n01~n02", "n77"), {"n02": 8}),
        (("n01~n02", "n01", "leaf1:17=n03/mlx5_2"), {"n01": 8, "n03": 8}),
    ],
)
def test_rent_is_of_nodes_that_were_promised_and_that_nobody_can_use_counted_once(
    excluded: tuple[str, ...], rent: dict[str, int]
) -> None:
    header, records = make_run()
    run = as_run(header, records)
    found = economics(run, Figures(header, Values(run), Facts(run)), excluded)
    assert {cost.subject: cost.usd.value for cost in found.findings} == {
        name: pytest.approx(count * RENT) for name, count in rent.items()
    }
    assert situation(found).accelerators == 32 - sum(rent.values())


def test_a_straggler_that_stays_costs_its_loss_over_the_whole_job() -> None:
    found = money(change=metric_at("burn_in.compute", 1.52 / 0.8, "n01/gpu3"))
    (cost,) = found.findings
    assert cost.subject == "n01/gpu3"
    assert set(cost.checks) == {"burn_in.compute", "burn_in.stragglers"}
    assert cost.usd.value == pytest.approx(situation(found).straggler_loss * 32 * RENT, rel=1e-4)
    assert situation(found).straggler_loss == pytest.approx(0.2, abs=0.01)
    assert "20" in cost.usd.basis
    assert money().findings == ()


def test_slow_saves_cost_the_difference_in_goodput() -> None:
    found = money(change=metric_at("checkpoint.save", 500.0))
    (cost,) = found.findings
    assert cost.checks == ("checkpoint.save",)
    at = situation(found)
    quick, late = (outlook(msgspec.structs.replace(at, save_s=save_s)).goodput for save_s in (120.0, 500.0))
    assert cost.usd.value == pytest.approx((quick - late) * 32 * RENT, rel=1e-3)
    assert (cost.usd.low or 0) < (cost.usd.value or 0) < (cost.usd.high or 0)
    assert "with saves of 120 s" in cost.usd.basis


def test_every_figure_that_money_is_reckoned_from_is_judged() -> None:
    judged = {check.metric for check in load_policy("acceptance").checks}
    checkpoints = {"burn_in.checkpoint", "checkpoint.save", "checkpoint.read_back"}
    assert judged >= {"burn_in.mfu", "burn_in.straggler_loss"} | checkpoints


@pytest.mark.parametrize(("seconds", "result"), [(12.0, "pass"), (300.0, "warn"), (3600.0, "fail"), (86400.0, "fail")])
def test_saves_of_the_training_itself_are_judged_and_cost_what_they_cost(seconds: float, result: str) -> None:
    header, records = make_run()
    slow = metric_at("burn_in.checkpoint", seconds)
    verdict = score_run(as_run(header, [slow(record) for record in records]))
    assert [f.result for f in verdict.findings if f.check == "checkpoint.of_training"] == [result]
    assert situation(verdict.economics).save_s == seconds
    assert bool(verdict.economics.findings) == (result != "pass")
    assert (verdict.verdict == "NO_GO") == (result == "fail")


@pytest.mark.parametrize("name", ["burn_in.checkpoint", "checkpoint.save"])
@pytest.mark.parametrize("how", ["timed out", "impossible"])
def test_of_two_kinds_of_saves_one_alone_is_no_figure(name: str, how: str) -> None:
    def change(record: AnyRecord) -> AnyRecord:
        if not isinstance(record, Measurement) or record.metric != name:
            return record
        if how == "impossible":
            return msgspec.structs.replace(record, samples=(-1.0,) * 5)
        return NotMeasured(
            metric=name, subject=record.subject, params=record.params, trial=record.trial, reason="timeout"
        )

    header, records = make_run()
    verdict = score_run(as_run(header, [change(record) for record in records]))
    assert not verdict.signable
    assert verdict.economics.goodput is None
    assert verdict.economics.usd_per_pflop_day is None


def test_nothing_measured_is_nothing_said() -> None:
    header, records = make_run()
    found = score_run(as_run(header, [r for r in records if not isinstance(r, Measurement)])).economics
    assert (found.goodput, found.usd_per_pflop_day, found.run_s, found.situation) == (None,) * 4
    assert found.replacements == ()


def test_scoring_twice_gives_the_same_bytes() -> None:
    header, records = make_run(faults=["slow@n01/gpu3=0.7"])
    header = msgspec.structs.replace(header, run_flops=1e24)
    one, other = (verdict_json(score_run(as_run(header, order))) for order in (records, records))
    assert one == other
    assert json.loads(one)["economics"]["situation"]["run_flops"] == 1e24


# The user's files and options --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_run(tmp_path_factory.mktemp("economics") / "run", nodes=1, accelerators=2)


def answer(*arguments: object) -> Result:
    return CliRunner().invoke(cli, [str(argument) for argument in arguments])


def test_score_takes_flops_and_costs_and_leaves_the_verdict_of_the_run_alone(run: Path, tmp_path: Path) -> None:
    costs = tmp_path / "costs.yaml"
    costs.write_text("support_usd_per_month: 1000\nspare: cold\n")
    result = answer("score", run, "--run-flops", "3e24", "--costs", costs, "--json")
    found = json.loads(result.stdout)["economics"]
    assert found["run_flops"] == 3e24
    assert found["run_s"]["low"] < found["run_s"]["value"] < found["run_s"]["high"]
    assert [way["assumed"] for way in found["replacements"]] == [False, True, False]
    assert not (run / "verdict.json").exists()


def test_the_terminal_says_what_a_training_run_takes_and_what_the_test_cost(run: Path) -> None:
    told = " ".join(answer("score", run, "--run-flops", "1e24").output.split())
    assert "A training run of 1e+24 FLOPs takes" in told
    assert "and costs $ " in told
    assert "The test itself took" in told
    assert "A training run" not in answer("score", run).output


def test_flops_and_costs_are_recorded_before_a_run_begins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    costs = tmp_path / "costs.yaml"
    costs.write_text("spare: cold\n")
    seen: list[RunHeader] = []

    def stop(path: Path, header: RunHeader) -> None:
        seen.append(header)
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr("hwlottery.runner.run.RunWriter.create", stop)
    result = answer("run", "--run-flops", "3e24", "--costs", costs, "--out", tmp_path / "run")
    assert result.exit_code == 6
    (header,) = seen
    assert header.run_flops == 3e24
    assert header.costs is not None
    assert header.costs.text == "spare: cold\n"


@pytest.mark.parametrize("flops", ["0", "-1e24", "nan", "1e99", "many"])
def test_flops_that_are_no_work_are_refused(run: Path, flops: str) -> None:
    result = answer("score", run, "--run-flops", flops)
    assert result.exit_code == 2
    assert "--run-flops" in result.output


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("storage: 5", "costs.yaml: storage: unknown key (choices: storage_usd_per_month, egress_usd_per_month,"),
        ("setup_hour: 5", "costs.yaml: setup_hour: unknown key, did you mean setup_hours? (choices: storage_usd"),
        ("spare: warm", "costs.yaml: spare: should be 'hot', 'cold' or 'none', not 'warm'"),
        ("support_usd_per_month: -1", "costs.yaml: support_usd_per_month: should be greater than"),
        ("", "costs.yaml: it is empty (keys: storage_usd_per_month, egress_usd_per_month,"),
        ("setup_hours: true", "costs.yaml: setup_hours: should be a number, not true"),
        ("egress_usd_per_month: .nan", "costs.yaml: line 1: '.nan' is no finite number"),
        ("setup_hours: 800\nrental_months: 1", "setup_hours leave nothing of the rental (730 h)"),
        ("!!python/object/apply:os.system ['touch harm']", "costs.yaml: line 1: tags (!name) are not allowed"),
        ("x: " + "y" * 300_000, "costs.yaml: over 256 KiB"),
    ],
)
def test_a_file_of_costs_that_is_wrong_or_hostile_is_one_line(run: Path, tmp_path: Path, text: str, told: str) -> None:
    file = tmp_path / "costs.yaml"
    file.write_text(text)
    for command in ("score", "report"):
        result = answer(command, run, "--costs", file)
        assert result.exit_code == 2
        assert told in result.output
        assert len(result.output.splitlines()) == 1


def test_a_resume_takes_flops_and_costs_from_the_run(run: Path) -> None:
    result = answer("run", "--resume", run, "--run-flops", "1e24")
    assert result.exit_code == 2
    assert "--run-flops cannot be given with --resume" in result.output
