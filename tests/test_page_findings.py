"""The findings table: what decides first, like findings in one row, what they cost, since when, and their logs."""

import os
import re
from pathlib import Path

import msgspec
import pytest
from generated_runs import write_run
from test_page_safety import Outline

from hwlottery.evidence import Run, read_run
from hwlottery.reports.findings import Row, rows
from hwlottery.reports.first_screen import categories, tally
from hwlottery.reports.log_excerpt import LAST_BYTES, MOST_LINES, excerpt, log_names
from hwlottery.reports.measured import Measured
from hwlottery.reports.page import render
from hwlottery.reports.visibility import required_words
from hwlottery.scoring import score_run
from hwlottery.scoring.verdict import Finding, FindingCost, Interval, Verdict


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, Verdict]:
    """Twenty nodes: a slow GPU and a node that never joined are taken out, and a tool is missing on another."""
    faults = ["slow@n03/gpu1=0.7", "never_joined@n05", "tool_missing@n07"]
    place = tmp_path_factory.mktemp("findings") / "run"
    run = read_run(write_run(place, nodes=40, accelerators=2, faults=faults, price=2.0))
    return run, score_run(run)


def table(run: Run, verdict: Verdict, *findings: Finding) -> list[Row]:
    shown = msgspec.structs.replace(verdict, findings=findings) if findings else verdict
    return rows(Measured(run), shown, charts=False)[0]


def finding(check: str, subject: str = "n01", **wanted: object) -> Finding:
    plain: dict[str, object] = {"category": "compute", "result": "not_measured", "required": True}
    return Finding(check=check, subject=subject, **(plain | wanted))


def test_what_is_required_and_missing_comes_first_where_nothing_could_be_decided(judged: tuple[Run, Verdict]) -> None:
    run, verdict = judged
    assert verdict.verdict == "INCONCLUSIVE"
    first, *_, last = table(run, verdict)
    assert (first.result, first.required) == ("not_measured", True)
    assert first.nodes == "n07"
    assert "n05" in last.nodes.split(), "what is missing on a node that is taken out decides nothing"


def test_failures_come_first_under_any_other_verdict(judged: tuple[Run, Verdict]) -> None:
    run, verdict = judged
    no_go = msgspec.structs.replace(verdict, verdict="NO_GO")
    assert table(run, no_go)[0].result == "fail"


def test_missing_values_on_nodes_that_are_taken_out_share_one_row(judged: tuple[Run, Verdict]) -> None:
    run, verdict = judged
    lost = [e for e in verdict.findings if e.result == "not_measured" and e.subject.startswith(("n03", "n05"))]
    (row,) = [row for row in table(run, verdict) if "on excluded" in row.check]
    assert row.check == f"{len(lost)} results on excluded nodes"
    assert "n05" in row.nodes.split()


@pytest.mark.parametrize("detail", ["--only matmul", "left out by --only matmul"])
def test_what_only_leaves_out_is_one_row_and_not_one_for_each_check(judged: tuple[Run, Verdict], detail: str) -> None:
    run, verdict = judged
    left_out = [
        finding(f"check{place}", category=category, reason="skipped_by_profile", detail=detail)
        for place, category in enumerate(["memory", "fabric", "storage"] * 6)
    ]
    (row,) = table(run, verdict, *left_out)
    assert row.check == "18 results left out by --only matmul"
    assert set(row.categories.split()) == {"memory", "fabric", "storage"}
    assert "check17 (1)" in dict(row.detail)["Checks"]
    assert row.action == "Run again without --only."


def test_left_out_by_the_profile_and_by_only_are_told_apart(judged: tuple[Run, Verdict]) -> None:
    run, verdict = judged
    details = ("--only matmul", "--only matmul", "profile quick", "profile quick")
    found = [finding(f"c{n}", reason="skipped_by_profile", detail=detail) for n, detail in enumerate(details)]
    checks = [row.check for row in table(run, verdict, *found)]
    assert checks == ["2 results left out by --only matmul", "2 results left out by profile quick"]


def test_a_finding_with_a_value_always_has_a_row_of_its_own(judged: tuple[Run, Verdict]) -> None:
    run, verdict = judged
    alike = [finding("c", subject=f"n0{n}", result="fail", observed=1.0) for n in range(4)]
    assert len(table(run, verdict, *alike)) == 4


def test_findings_on_nodes_that_are_taken_out_are_counted_apart(judged: tuple[Run, Verdict]) -> None:
    _, verdict = judged
    out = msgspec.structs.replace(
        verdict,
        exclude=("n05",),
        findings=(finding("a"), *(finding(f"b{n}", subject="n05/gpu0") for n in range(10))),
    )
    assert tally(out.findings, out) == "1 not measured; 10 more on excluded n05 (10 not measured)"
    assert required_words(out) == (
        "0 of 1 required values on what remains were measured; 10 more are missing on excluded n05."
    )


def test_a_category_that_is_missing_on_excluded_nodes_alone_was_measured(judged: tuple[Run, Verdict]) -> None:
    _, verdict = judged
    found = (finding("a", result="pass"), finding("a", subject="n05/gpu0"))
    for exclude, word in ((("n05",), "pass"), ((), "not measured")):
        state = categories(msgspec.structs.replace(verdict, exclude=exclude, findings=found))[1]
        assert (state.name, state.word) == ("compute", word)


def test_a_row_says_what_taking_out_costs_and_since_when(judged: tuple[Run, Verdict]) -> None:
    run, verdict = judged
    row = next(row for row in table(run, verdict) if row.check == "matmul.rate")
    assert row.cost == "$ 2,920", "two GPUs at 2 USD for 730 hours"
    record = next(e for e in run.measurements if e.subject == row.subject and e.metric == "matmul.tflops")
    started = record.start or next(e.time for e in run.events if e.trial == record.trial)
    assert row.since.split()[0] == f"{started:%d}"


def test_the_dearest_failure_stands_first(judged: tuple[Run, Verdict]) -> None:
    run, verdict = judged
    cheap = finding("a", subject="n01/gpu0", result="fail", observed=1.0, excludes="n01/gpu0")
    dear = finding("b", subject="n02", result="fail", observed=1.0, excludes="n02", confidence="low")
    usd = {"n01/gpu0": 1460.0, "n02": 2920.0}
    costs = tuple(
        FindingCost(subject=name, usd=Interval(value=value, low=None, high=None, unit="USD", basis="rent"))
        for name, value in usd.items()
    )
    money = msgspec.structs.replace(verdict.economics, findings=costs)
    no_go = msgspec.structs.replace(verdict, verdict="NO_GO", economics=money)
    assert [row.subject for row in table(run, no_go, cheap, dear)] == ["n02", "n01/gpu0"]


def test_a_check_that_fails_on_very_many_subjects_is_one_row_and_pushes_nothing_off_the_table(tmp_path: Path) -> None:
    faults = [f"ecc@n{node:02d}/gpu{gpu}={gpu + 1}" for node in range(16) for gpu in range(4)]
    run = read_run(write_run(tmp_path / "run", nodes=16, accelerators=4, faults=[*faults, "slow@n03/gpu1=0.7"]))
    found = table(run, score_run(run))
    (row,) = [row for row in found if row.check == "health.ecc"]
    assert row.subject == "64 GPUs"
    assert row.observed == "1 error to 4 errors"
    assert row.cost == "$ 117,000", "the rent of 64 GPUs at 2.5 USD for 730 hours, each node once"
    assert row.statement.startswith("n00/gpu3 had 4 errors"), "the worst speaks for all"
    assert row.statement.endswith(" and 23 more.")
    assert "n15/gpu3" in row.subjects
    assert {word for word, _ in row.detail}.isdisjoint({"Samples", "First attempt"}), "they are of one subject"
    assert any(row.subject == "n03/gpu1" for row in found), "what is on few subjects stays by itself"


def test_a_node_that_is_slow_with_everybody_is_drawn_among_all_pairs(tmp_path: Path) -> None:
    faults = ["slow_node@n02=0.6", "slow_link@n01~n04=0.5"]
    run = read_run(write_run(tmp_path / "run", nodes=6, accelerators=2, faults=faults))
    found, _ = rows(Measured(run), score_run(run))
    node, link = ({row.check: row for row in found}[check] for check in ("pairs.nodes", "pairs.links"))
    assert node.chart is not None
    assert ">n02 with 5 partners<" in node.chart
    assert len(re.findall("n0.~n0.: ", node.chart)) == 15, "each pair of six nodes"
    assert link.chart is not None
    assert ">n01~n04<" in link.chart
    assert "Samples" in dict(link.detail)


def test_a_finding_opens_to_the_last_lines_of_its_log(tmp_path: Path) -> None:
    place = write_run(tmp_path / "run", nodes=1, accelerators=2, device="cpu", policy="smoke", faults=["raised@n00"])
    before = read_run(place)
    missing = next(e for e in score_run(before).findings if e.result == "not_measured" and e.evidence)
    (place / "logs").mkdir(exist_ok=True)
    lines = [f"line {n}" for n in range(50)] + ["<script>alert(1)</script>\x1b[31m MemoryError\x1b[0m"]
    (place / "logs" / f"{missing.evidence[0]}-n00-slot0.log").write_text("\n".join(lines))
    run = read_run(place)
    verdict = msgspec.structs.replace(score_run(run), findings=(missing,))
    page = render(run, verdict)
    text = Outline(page).text
    assert "<script>alert(1)</script> MemoryError" in text
    assert "line 49" in text
    assert "line 20 " not in text
    assert len(Outline(page).all("script")) == 1


def test_only_plain_files_in_the_folder_of_logs_are_read(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    logs = tmp_path / "run" / "logs"
    logs.mkdir(parents=True)
    (logs / "t-link.log").symlink_to(secret)
    os.mkfifo(logs / "t-pipe.log")
    (logs / "t-folder.log").mkdir()
    (logs / "t-plain.log").write_text("plain")
    names = log_names(tmp_path / "run", ["t-"])
    found = [excerpt(tmp_path / "run", name) for name in names]
    assert [each.text for each in found if each] == ["plain"]
    assert excerpt(tmp_path / "run", "../../secret") is None


def test_a_folder_of_logs_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "t.log").write_text("elsewhere")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "logs").symlink_to(tmp_path / "elsewhere")
    assert log_names(tmp_path / "run", ["t"]) == []
    assert excerpt(tmp_path / "run", "t.log") is None


def test_a_huge_log_shows_its_end_alone(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "t.log").write_text("x" * 10_000_000 + "\n" + "last\n" * 100)
    found = excerpt(tmp_path, "t.log")
    assert found is not None
    assert found.cut
    assert found.text == "\n".join(["last"] * MOST_LINES)
    (tmp_path / "logs" / "t.log").write_text("y" * 1_000_000)
    one = excerpt(tmp_path, "t.log")
    assert one is not None
    assert len(one.text) < LAST_BYTES
