"""CSV and JUnit: every record is there, nothing missing looks like a value, and text stays text."""

import csv
import io
import re
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree as ET

import msgspec
import pytest
from generated_runs import as_run, make_run, write_records, write_run
from hypothesis import given, settings
from hypothesis import strategies as st

from hwlottery.evidence import NotMeasured, Run, measured, read_run
from hwlottery.reports import junit, table_export
from hwlottery.reports.exports import exported
from hwlottery.scoring import score_run
from hwlottery.scoring.verdict import Finding, Verdict

LINE_ENDS = ("\n", "\r", "\r\n", "\v", "\f", "\x1c", "\x85", "\u2028", "\u2029")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A small run with a slow GPU, a missing tool and a node that hung."""
    faults = ["slow@n00/gpu1=0.7", "tool_missing@n01", "hung@n02/gpu0"]
    return read_run(write_run(tmp_path_factory.mktemp("exports") / "run", nodes=4, accelerators=2, faults=faults))


@pytest.fixture(scope="module")
def verdict(run: Run) -> Verdict:
    return score_run(run)


def rows_of(run: Run) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(exported(run, "csv").text)))


def cases_of(verdict: Verdict) -> Iterator[ET.Element]:
    return ET.fromstring(junit.render(verdict)).iter("testcase")


def test_csv_has_one_row_for_each_measurement_and_each_value_that_is_missing(run: Run) -> None:
    rows = rows_of(run)
    assert len(rows) == len(run.measurements) + len(run.not_measured)
    numbers = [int(row["number"]) for row in rows]
    assert numbers == sorted(numbers)


def test_csv_says_why_a_value_is_missing_and_leaves_its_figures_empty(run: Run) -> None:
    missing = [row for row in rows_of(run) if row["state"] != "measured"]
    assert {"tool_missing", "timeout"} <= {row["state"] for row in missing}
    assert all(row[figure] == "" for row in missing for figure in ("value", "n", "min", "median", "max"))


def test_csv_gives_the_statistic_of_the_metric_with_its_unit(run: Run) -> None:
    record = next(each for each in run.measurements if each.metric == "matmul.tflops")
    row = next(row for row in rows_of(run) if row["number"] == str(record.number))
    assert (row["unit"], row["statistic"], row["n"]) == ("TFLOPS", "median", "20")
    assert float(row["min"]) == min(record.numbers())
    assert float(row["value"]) == float(row["median"])


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t=", " =", "\r="])
def test_csv_text_that_a_spreadsheet_would_run_gets_an_apostrophe(start: str) -> None:
    header, _ = make_run(nodes=1, accelerators=1)
    formula = f"{start}HYPERLINK(1)"
    records = [NotMeasured(metric=formula, subject="n00", reason="raised", detail=formula)]
    (row,) = rows_of(as_run(header, records))  # as somebody else may have written it: our own writer escapes
    assert row["metric"] == row["detail"]
    assert row["detail"].startswith("'")
    assert row["detail"].endswith(formula.strip())


@pytest.mark.parametrize("end", LINE_ENDS)
def test_csv_rows_are_lines_whatever_a_detail_holds(tmp_path: Path, end: str) -> None:
    header, _ = make_run(nodes=1, accelerators=1)
    records = [NotMeasured(metric="memory.copy", subject="n00", reason="raised", detail=f"one{end}two")]
    text = exported(read_run(write_records(tmp_path / "run", header, records)), "csv").text
    assert len(text.splitlines()) == 2
    assert "one" in text.splitlines()[1]
    assert "two" in text.splitlines()[1]


@pytest.mark.parametrize("end", LINE_ENDS)
def test_junit_lines_are_the_report_s_own(end: str) -> None:
    finding = Finding(check="c", category="compute", subject="n00", result="fail", required=True, detail="one two")
    odd = msgspec.structs.replace(finding, detail=f"one{end}two", action=f"do{end}this", statement=f"say{end}this")
    (_, case) = cases_of(_verdict((odd,)))
    told = case.findtext("failure") or ""
    assert len(told.splitlines()) == 3
    verdict = msgspec.structs.replace(_verdict(()), sentence=f"no{end}GO: fine", reasons=(f"a{end}b",))
    (own,) = cases_of(verdict)
    assert len((own.findtext("failure") or "").splitlines()) == 2


def test_junit_says_of_a_go_that_is_not_signable_that_it_is_none_to_sign() -> None:
    for signable, word in ((True, "GO: "), (False, "GO (not signable): ")):
        (case,) = cases_of(msgspec.structs.replace(_verdict(()), verdict="GO", signable=signable))
        assert (case.findtext("system-out") or "").startswith(word)


def test_csv_keeps_negative_numbers_as_numbers(tmp_path: Path) -> None:
    header, _ = make_run(nodes=1, accelerators=1)
    records = [measured(metric="burn_in.loss_drop", subject="cluster", samples=[-0.25])]
    (row,) = rows_of(read_run(write_records(tmp_path / "run", header, records)))
    assert float(row["value"]) == -0.25


def test_csv_reads_the_median_from_quantiles_where_there_are_no_samples(tmp_path: Path) -> None:
    header, _ = make_run(nodes=1, accelerators=1)
    records = [measured(metric="burn_in.step", subject="n00/gpu0", samples=range(1, 2002))]
    (row,) = rows_of(read_run(write_records(tmp_path / "run", header, records)))
    assert (float(row["median"]), row["n"]) == (1001.0, "2001")


def test_junit_counts_what_it_holds(verdict: Verdict) -> None:
    root = ET.fromstring(junit.render(verdict))
    assert int(root.get("tests", "0")) == len(verdict.findings) + 1 == len(list(root.iter("testcase")))
    assert int(root.get("failures", "0")) == len(list(root.iter("failure")))
    assert int(root.get("errors", "0")) == len(list(root.iter("error")))


def test_junit_shows_nothing_green_that_did_not_pass(verdict: Verdict) -> None:
    quiet = [case for case in cases_of(verdict) if len(case) == 0]
    assert len(quiet) == sum(each.result == "pass" for each in verdict.findings)


def test_junit_makes_a_required_value_that_is_missing_an_error(verdict: Verdict) -> None:
    required = [each for each in verdict.findings if each.result == "not_measured" and each.required]
    own = [case for case in cases_of(verdict) if case.get("classname") != "hwlottery"]
    errors = [case for case in own if case.find("error") is not None]
    assert len(errors) == len(required) > 0


def test_junit_of_a_verdict_that_cannot_be_signed_is_red_even_without_findings(verdict: Verdict) -> None:
    for word, part in (("NO_GO", "failure"), ("INCONCLUSIVE", "error")):
        bare = msgspec.structs.replace(verdict, verdict=word, findings=())
        (case,) = cases_of(bare)
        assert case.find(part) is not None


@given(st.text(max_size=60))
@settings(max_examples=60, deadline=None)
def test_junit_is_well_formed_whatever_a_finding_says(words: str) -> None:
    finding = Finding(check="c", category="compute", subject=words, result="fail", required=True, expected=words)
    empty = _verdict((msgspec.structs.replace(finding, detail=words),))
    (_, case) = cases_of(empty)
    assert case.find("failure") is not None


def test_csv_of_the_same_run_is_the_same_text(run: Run) -> None:
    one, other = io.StringIO(), io.StringIO()
    table_export.write(run, one)
    table_export.write(run, other)
    assert one.getvalue() == other.getvalue()


def _verdict(findings: tuple[Finding, ...]) -> Verdict:
    document = {
        "run_id": "r", "verdict": "NO_GO", "signable": False, "sentence": "s", "reasons": [], "not_judged": [],
        "confidence": "low", "index": None, "exclude": [], "findings": [], "policy": {"name": "p", "sha256": "0"},
        "coverage": {"required": 0, "measured": 0, "closed": 0}, "economics": {},
        "reliability": {"node_days": 0.0, "failures": 0, "rate_low": None, "rate_high": None,
                        "projected_rate": None, "node_days_to_settle": None},
    }  # fmt: skip
    return msgspec.structs.replace(msgspec.convert(document, Verdict), findings=findings)


def test_every_text_format_takes_a_hostile_run_and_stays_text(tmp_path: Path) -> None:
    from test_page_safety import HOSTILE, hostile_run

    from hwlottery.reports import prometheus, ticket

    run, verdict = hostile_run(tmp_path / "run")
    written = ticket.as_markdown(ticket.ticket(run, verdict))
    assert not re.search(r"(?<!\\)[<`\[]", written.replace("hwlottery score RUN", ""))
    assert "\x07" not in written
    for line in prometheus.render(run, verdict).splitlines():
        assert line.startswith(("hwlottery_", "# HELP hwlottery_", "# TYPE hwlottery_"))
    assert HOSTILE.removesuffix("\x07").replace("\\", "\\\\").replace('"', '\\"') in prometheus.render(run, verdict)
