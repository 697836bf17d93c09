"""What the page's sections say of a run, sentence by sentence, where something is wrong or missing."""

from datetime import timedelta
from pathlib import Path

import msgspec
import pytest
from generated_runs import START, as_run, make_run, write_records, write_run

from hwlottery.evidence import AnyRecord, Event, Fact, Measurement, NotMeasured, Run, measured, read_run
from hwlottery.reports.appendix import appendix
from hwlottery.reports.findings import passed, rows
from hwlottery.reports.layout import Section
from hwlottery.reports.measured import Measured, params_label
from hwlottery.reports.node_list import node_list
from hwlottery.reports.rental import rented
from hwlottery.reports.sections import SECTIONS
from hwlottery.reports.sections.burn_in_failures import failures as failures_part
from hwlottery.reports.visibility import exclusion, visibility
from hwlottery.scoring import score_run
from hwlottery.scoring.verdict import Reliability


def sections_of(run: Run) -> dict[str, Section]:
    measured_run, verdict = Measured(run), score_run(run)
    return {section.anchor: section for section in (build(measured_run, verdict) for build in SECTIONS)}


def run_with(place: Path, *faults: str, nodes: int = 4) -> Run:
    return read_run(write_run(place / "run", nodes=nodes, accelerators=4, faults=faults))


def run_of(place: Path, *records: AnyRecord) -> Run:
    header, _ = make_run(nodes=2, accelerators=2)
    return read_run(write_records(place / "run", header, records))


def test_wrong_sums_and_unequal_products_are_named_with_their_subjects(tmp_path: Path) -> None:
    told = sections_of(run_with(tmp_path, "wrong_elements@n01=4", "mismatch@n02/gpu1=2"))
    assert "Wrong sums on n01." in told["fabric"].answer
    assert "Repeated products differ on n02/gpu1." in told["compute"].answer


def test_a_subject_without_a_value_is_counted_in_the_title_of_the_chart(tmp_path: Path) -> None:
    chart = sections_of(run_with(tmp_path, "nan@n01/gpu2"))["compute"].chart
    assert chart is not None
    assert chart.title.startswith("15 GPUs within")
    assert chart.title.endswith("1 not measured")


def test_a_retest_counts_and_the_first_attempt_does_not(tmp_path: Path) -> None:
    chart = sections_of(run_with(tmp_path, "intermittent@n01/gpu2"))["compute"].chart
    assert chart is not None
    assert chart.title.startswith("All 16 GPUs within")


def test_a_straggler_of_the_burn_in_is_named(tmp_path: Path) -> None:
    answer = sections_of(run_with(tmp_path, "slow@n03/gpu0=0.7"))["burn_in"].answer
    assert "n03/gpu0 is 43 % above its peers" in answer


def test_a_loss_that_rises_and_replicas_that_part_are_said(tmp_path: Path) -> None:
    answer = sections_of(run_with(tmp_path, "loss_rises@cluster", "hash@cluster=1"))["burn_in"].answer
    assert "The loss did not fall." in answer
    assert "Replicas came apart" in answer


def test_nodes_of_another_kernel_are_listed_against_the_majority(tmp_path: Path) -> None:
    software = sections_of(run_with(tmp_path, "kernel@n02"))["software"]
    assert "4 nodes differ in os.kernel" in software.answer
    differing = next(table for table in software.tables if table.caption == "Where subjects differ")
    told = {row[2].text: row[4].text for row in differing.rows}
    assert told["6.9.0-odd"] == "n02"
    assert told["6.8.0-31-generic"] == "the majority"


def test_the_appendix_lists_each_node_with_its_identity_and_in_what_it_deviates(tmp_path: Path) -> None:
    run = run_with(tmp_path, "kernel@n02", "never_joined@n03")
    nodes = node_list(Measured(run))
    assert nodes is not None
    by_name = {row[0].text: [cell.text for cell in row[1:]] for row in nodes.rows}
    identity = next(f.value for f in run.facts if f.subject == "n02" and f.key == "hardware.identity")
    times, odd = "\N{MULTIPLICATION SIGN}", "os.kernel 6.9.0-odd, software.kernel 6.9.0-odd"
    assert by_name["n02"] == [f"identity (hash) {identity}", f"4 {times} NVIDIA H100 80GB HBM3", "container-root", odd]
    assert by_name["n01"][-1] == "\N{EM DASH}"
    assert by_name["n03"][:3] == ["n03, whose hardware is not known", "4 promised", "never joined"]


def test_no_node_deviates_where_there_is_no_majority(tmp_path: Path) -> None:
    facts = [Fact(subject=f"n0{index}", key="os.kernel", value=f"6.{index}") for index in range(2)]
    nodes = node_list(Measured(run_of(tmp_path, *facts)))
    assert nodes is not None
    assert {row[-1].text for row in nodes.rows} == {"\N{EM DASH}"}


def test_what_changes_by_the_minute_is_not_compared_between_nodes(tmp_path: Path) -> None:
    free = [Fact(subject=f"n0{index}", key="memory.available", value=index) for index in range(2)]
    same = [Fact(subject=f"n0{index}", key="os.kernel", value="6.8") for index in range(2)]
    assert sections_of(run_of(tmp_path, *free, *same))["software"].answer.startswith("All 2 nodes have the same")


def test_a_missing_tool_is_said_with_what_it_takes(tmp_path: Path) -> None:
    (gap,) = sections_of(run_with(tmp_path, "tool_missing@n01"))["storage"].gaps
    assert "filesystem.write_rate" in gap.metric
    assert "apt-get install fio" in gap.why
    assert "install the tool" in gap.remedy


def test_sections_without_any_value_say_not_measured_and_draw_nothing(tmp_path: Path) -> None:
    told = sections_of(run_of(tmp_path, NotMeasured(metric="matmul.tflops", subject="n00/gpu0", reason="timeout")))
    assert told["compute"].answer.startswith("Not measured: its deadline passed.")
    assert all(section.answer.startswith("Not measured") for section in told.values())
    assert not any(section.chart for section in told.values())


def test_a_save_that_stalls_is_the_message_of_the_chart(tmp_path: Path) -> None:
    saves = {"stage": 0.1, "write": 1.0, "sync": 0.5, "commit": 0.1}
    records = [
        measured(metric=f"checkpoint.{part}", subject="fs:/shared", samples=[typical, typical, typical * 9])
        for part, typical in {**saves, "save": 1.7}.items()
    ]
    chart = sections_of(run_of(tmp_path, *records))["storage"].chart
    assert chart is not None
    assert chart.title == "1 save of 3 took over twice the median"
    assert "fill-bad" in chart.svg, "the stall stands in colour"


def test_the_filesystem_that_stalls_is_drawn_before_the_slower_one(tmp_path: Path) -> None:
    parts = {"stage": 0.1, "write": 1.0, "sync": 0.5, "commit": 0.1, "save": 1.7}
    records = [
        measured(metric=f"checkpoint.{part}", subject=f"n0{node}/fs:/scratch", samples=samples)
        for part, s in parts.items()
        for node, samples in enumerate(([s, s, s * 9], [s * 1.2] * 3))
    ]
    chart = sections_of(run_of(tmp_path, *records))["storage"].chart
    assert chart is not None
    assert chart.title == "n00/fs:/scratch: 1 save of 3 took over twice the median"


def test_saves_without_a_stall_are_in_no_colour_that_warns(tmp_path: Path) -> None:
    parts = {"stage": 0.1, "write": 1.0, "sync": 0.5, "commit": 0.1, "save": 1.7}
    records = [
        measured(metric=f"checkpoint.{part}", subject="fs:/shared", samples=[s] * 20) for part, s in parts.items()
    ]
    chart = sections_of(run_of(tmp_path, *records))["storage"].chart
    assert chart is not None
    assert "fill-bad" not in chart.svg


def test_the_parts_of_a_save_name_the_largest(tmp_path: Path) -> None:
    parts = {"stage": 0.0, "write": 1.0, "sync": 3.0, "commit": 0.0, "save": 4.0}
    records = [measured(metric=f"checkpoint.{part}", subject="fs:/shared", samples=[s, s]) for part, s in parts.items()]
    chart = sections_of(run_of(tmp_path, *records))["storage"].chart
    assert chart is not None
    assert chart.title == "75 % of a save is fsync"


def test_a_link_at_half_width_differs_from_the_majority(tmp_path: Path) -> None:
    records = [
        measured(metric="topology.pcie_width", subject=f"n00/gpu{index}", samples=[8.0 if index == 2 else 16.0])
        for index in range(4)
    ]
    topology = sections_of(run_of(tmp_path, *records))["topology"]
    assert topology.answer == "3 of 4 devices run with 16 lanes; n00/gpu2 differs."
    assert topology.chart is not None
    assert topology.chart.title == "n00/gpu2 differs from the majority"


def test_steps_that_slow_down_are_the_message_of_the_burn_in(tmp_path: Path) -> None:
    slowing = [1.0 + index / 100 for index in range(60)]
    chart = sections_of(run_of(tmp_path, measured(metric="burn_in.step", subject="n00/gpu0", samples=slowing)))[
        "burn_in"
    ].chart
    assert chart is not None
    assert chart.title.startswith("Step time rises by 3")


def test_steps_stand_over_the_hours_they_took_and_events_above_them(tmp_path: Path) -> None:
    steps = measured(metric="burn_in.step", subject="n00/gpu0", samples=[1.0] * 60)
    assert isinstance(steps, Measurement)
    steps = msgspec.structs.replace(steps, start=START, end=START + timedelta(hours=6))
    inside = Event(time=START + timedelta(hours=3), kind="xid", subject="n00/gpu0", severity="error", detail="79")
    after = Event(time=START + timedelta(hours=7), kind="xid", subject="n01/gpu0", severity="error", detail="79")
    chart = sections_of(run_of(tmp_path, steps, inside, after))["burn_in"].chart
    assert chart is not None
    assert chart.title == "Step time stays at 1 s; 1 event meanwhile"
    assert "hours since the burn-in began" in chart.svg
    assert "17:02:00 UTC, n00/gpu0: xid" in chart.svg
    assert "n01/gpu0" not in chart.svg


@pytest.mark.parametrize(
    ("failures", "days", "low", "high", "title"),
    [
        (0, 16.0, None, 0.187, "Too few node-days to tell from published clusters: at most 187 per 1,000 node-days"),
        (0, 1000.0, None, 0.003, "Nodes fail no more often than in published clusters: at most 3 per 1,000 node-days"),
        (
            9,
            90.0,
            0.052,
            0.17,
            "Nodes fail more often than in published clusters: 52 to 170 per 1,000 node-days",
        ),
    ],
)
def test_the_failure_rate_is_told_against_published_clusters(
    failures: int, days: float, low: float | None, high: float, title: str
) -> None:
    header, records = make_run(nodes=1, accelerators=1, policy="smoke", device="cpu")
    seen = Reliability(
        node_days=days,
        failures=failures,
        rate_low=low,
        rate_high=high,
        projected_rate=0.004,
        node_days_to_settle=None,
    )
    part = failures_part(msgspec.structs.replace(score_run(as_run(header, records)), reliability=seen))
    assert part is not None
    assert part.chart is not None
    assert part.chart.title == title
    assert "Llama 3, 16,384 H100: 3.79" in part.chart.svg
    assert ("fill-bad" in part.chart.svg) == (low is not None)


def test_a_promised_time_between_failures_is_a_line_in_the_chart_of_failures() -> None:
    header, records = make_run(nodes=2, accelerators=1, policy="contract")
    part = failures_part(score_run(as_run(header, records)))
    assert part is not None
    assert part.chart is not None
    assert ">promised " in part.chart.svg


def test_no_rate_is_drawn_where_no_time_or_hardly_any_was_observed() -> None:
    header, records = make_run(nodes=2, accelerators=1, hours=0.1)
    short = score_run(as_run(header, records))
    assert short.reliability.node_days > 0
    assert failures_part(short) is None
    assert failures_part(score_run(as_run(header, []))) is None


def test_what_is_demanded_by_reference_is_a_line_beside_the_median(tmp_path: Path) -> None:
    chart = sections_of(run_with(tmp_path, "slow@n01/gpu1=0.7"))["compute"].chart
    assert chart is not None
    assert ">demanded 657 TFLOPS<" in chart.svg
    assert ">good 694 TFLOPS<" in chart.svg
    assert ">median 731 TFLOPS<" in chart.svg


def test_a_burn_in_of_more_steps_than_are_kept_is_drawn_from_its_quantiles(tmp_path: Path) -> None:
    records = [
        measured(metric="burn_in.step", subject=f"n00/gpu{index}", samples=[1.0 + index] * 1500) for index in range(3)
    ]
    burn_in = sections_of(run_of(tmp_path, *records))["burn_in"]
    assert "1,500 steps" in burn_in.answer
    assert burn_in.chart is not None


def test_like_findings_without_a_value_are_one_row_that_names_all(tmp_path: Path) -> None:
    run = run_with(tmp_path, "never_joined@n01")
    verdict = msgspec.structs.replace(score_run(run), exclude=())
    found, _ = rows(Measured(run), verdict, charts=False)
    gathered = [row for row in found if row.check == "matmul.rate"]
    assert [row.subject for row in gathered] == ["n01: 4 GPUs"]
    assert "n01/gpu3" in gathered[0].subjects


def test_findings_that_fail_stand_before_what_is_missing_and_what_warns(tmp_path: Path) -> None:
    run = run_with(tmp_path, "slow@n01/gpu1=0.7", "tool_missing@n02", "kernel@n03")
    verdict = msgspec.structs.replace(score_run(run), verdict="NO_GO", exclude=())
    found, _ = rows(Measured(run), verdict, charts=False)
    order = [(row.result, row.required) for row in found]
    ranks = [{"fail": 0, "not_measured": 1 if required else 3, "warn": 2}[result] for result, required in order]
    assert ranks == sorted(ranks)
    assert {0, 1, 2} <= set(ranks)


def test_at_most_fifty_rows_are_shown_and_the_rest_counted(tmp_path: Path) -> None:
    run = run_with(tmp_path, "ecc@n01/gpu0=1")
    verdict = score_run(run)
    failed = next(each for each in verdict.findings if each.result == "fail")
    many = tuple(msgspec.structs.replace(failed, check=f"health.{number}") for number in range(60))
    verdict = msgspec.structs.replace(verdict, findings=many)
    found, left_out = rows(Measured(run), verdict, charts=False)
    covered = sum(len(row.subjects.split(", ")) for row in found)
    assert len(found) == 50
    assert covered + left_out == sum(each.result != "pass" for each in verdict.findings)


def test_passes_are_one_row_a_check_and_none_is_lost(tmp_path: Path) -> None:
    verdict = score_run(run_with(tmp_path))
    table = passed(verdict)
    assert table is not None
    assert sum(int(row[3].sort or 0) for row in table.rows) == sum(each.result == "pass" for each in verdict.findings)


def test_what_is_closed_to_the_tenant_and_unreadable_is_listed(tmp_path: Path) -> None:
    closed = NotMeasured(
        metric="health.ecc_uncorrected", subject="n00/gpu0", reason="closed_to_tenant", detail="no NVML"
    )
    run = run_of(tmp_path, closed, Fact(subject="n00", key="unreadable.cpu.governor", value="hidden"))
    captions = {table.caption: table for table in visibility(Measured(run), score_run(run))}
    assert captions["Closed to the tenant"].rows[0][3].text == "no NVML"
    assert captions["Facts that could not be read"].rows[0][0].text == "cpu.governor"
    assert captions["From where the nodes were seen"].rows[0][2].text == "2"


def test_a_device_takes_its_node_along_and_is_named(tmp_path: Path) -> None:
    run = run_of(tmp_path)
    verdict = msgspec.structs.replace(score_run(run), exclude=("n10", "n2", "n1/gpu3"))
    out = exclusion(verdict)
    assert out.option == "--exclude=n1,n2,n10"
    assert out.parts == ("n1/gpu3",)


def test_the_masthead_names_provider_cluster_and_size(tmp_path: Path) -> None:
    assert rented(run_with(tmp_path)) == "Provider A · fra-2 · 4 \N{MULTIPLICATION SIGN} 4 H100 80GB HBM3"


def test_trials_that_did_not_finish_come_first_and_errors_are_listed(tmp_path: Path) -> None:
    shown = appendix(run_with(tmp_path, "hung@n01/gpu3"))
    assert shown.trials.rows[0][4].text == "timed out"
    assert shown.events is not None
    assert any(row[2].text == "hang" for row in shown.events.rows)


def test_an_event_tells_how_long_after_the_start_it_came(tmp_path: Path) -> None:
    late = Event(
        time=START + timedelta(hours=3, minutes=5), kind="xid", subject="n00/gpu0", severity="error", detail="79"
    )
    events = appendix(run_of(tmp_path, late)).events
    assert events is not None
    assert events.rows[0][1].text == "3 h 05 min"


def test_params_read_as_people_say_them() -> None:
    product = params_label({"dtype": "bf16", "m": 8, "n": 16, "k": 32, "phase": "burst"})
    assert product == "bf16 8x16x32 burst".replace("x", "\N{MULTIPLICATION SIGN}")
    assert params_label({"bytes": 2**26, "dtype": "fp32", "ranks": 2}) == "fp32, 64 MiB, 2 ranks"
    assert params_label({}) == "\N{EM DASH}"
