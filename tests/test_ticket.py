"""The ticket to the provider: what was found on which hardware, when; and nothing of the buyer's money in it."""

import io
import re
import zipfile
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner
from generated_runs import make_run, write_records

from hwlottery.cli import cli
from hwlottery.evidence import Fact, NotMeasured, Run, read_run
from hwlottery.evidence.writing import write_checksums
from hwlottery.reports.exports import Wanted, exported
from hwlottery.reports.numbers import figure
from hwlottery.reports.ticket import NoTicket, as_markdown, ticket
from hwlottery.scoring import score_run

HOSTILE = "x|y`z`\n# own <img src=x onerror=alert(1)> [a](javascript:b) \"'{{7*7}}"
PRICE = 3.4567  # a figure that nothing else in a run has
LOG = "step 1 loss 10.4\nhwlottery run --price 3.4567\nrent is 3.4567 USD an hour\n| ``` </pre>\nlast words\n"


def facts():
    yield Fact(subject="n01", key="identity.product_serial", value="SN-4711")
    yield Fact(subject="n02", key="identity.product_serial", value=HOSTILE)
    yield Fact(subject="n01/mlx5_0", key="nic.node_guid", value="b83f:d203:0001:0002")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A slow GPU, a node that was lost, a sensor closed to the tenant, a price, and a log that speaks of it."""
    header, records = make_run(nodes=12, accelerators=4, price=PRICE, faults=["slow@n01/gpu3=0.78", "lost@n02"])
    segment = msgspec.structs.replace(header.segments[0], command=("hwlottery", "run", "--price", str(PRICE)))
    header = msgspec.structs.replace(header, segments=(segment,))
    closed = NotMeasured(metric="health.temperature", subject="n01", reason="closed_to_tenant", detail="no permission")
    place = write_records(tmp_path_factory.mktemp("ticket") / "run", header, [*facts(), *records, closed])
    first = read_run(place)
    trial = next(
        each for each in score_run(first).findings if each.check == "matmul.rate" and each.result == "fail"
    ).evidence[0]
    (place / "logs" / f"{trial}-n01-gpu3.log").write_text(LOG)
    write_checksums(place)
    return read_run(place)


def text_of(run: Run, *nodes: str) -> str:
    return exported(run, "ticket", Wanted(nodes=nodes)).text


def zip_of(run: Run) -> zipfile.ZipFile:
    return zipfile.ZipFile(io.BytesIO(exported(run, "ticket", Wanted(zipped=True)).content))


def test_a_ticket_names_the_hardware_the_time_the_figures_and_the_trials(run: Run) -> None:
    text = text_of(run)
    assert not run.problems
    for told in ("SN-4711", "b83f:d203:0001:0002", "GPU-", "2026-11-28 14:02 UTC", "TFLOPS", "matmul-"):
        assert told in text
    finding = next(each for each in score_run(run).findings if each.check == "matmul.rate" and each.result == "fail")
    assert finding.statement in text
    assert f"| Observed | {figure(finding.observed, finding.unit)} |" in text


def test_a_ticket_holds_every_finding_that_failed_or_warned_and_no_other(run: Run) -> None:
    bad = [each for each in score_run(run).findings if each.result in ("fail", "warn")]
    assert len(re.findall(r"^## \d+\. ", text_of(run), re.MULTILINE)) == len(bad) > 2


def test_a_ticket_of_one_node_speaks_of_that_node_alone(run: Run) -> None:
    text = text_of(run, "n02")
    assert "n02" in text
    assert "n01" not in text


def test_a_ticket_says_what_the_tenant_could_not_see(run: Run) -> None:
    assert "health.temperature on n01" in text_of(run, "n01").replace("\\", "")


@pytest.mark.parametrize("zipped", [False, True])
def test_no_price_and_no_money_stands_in_a_ticket(run: Run, zipped: bool) -> None:
    whole = text_of(run)
    if zipped:
        archive = zip_of(run)
        whole = "\n".join(archive.read(name).decode() for name in archive.namelist()) + " ".join(archive.namelist())
    for word in ("3.4567", "usd", "price", "$", "pflop", "goodput"):
        assert word not in whole.lower()
    assert "last words" in whole, "the rest of the log is there"
    assert "(a line left out)" in whole


def test_the_economics_of_the_verdict_do_not_reach_a_ticket(run: Run) -> None:
    verdict = score_run(run)
    reasons = msgspec.structs.replace(verdict, reasons=("COSTS 1",), not_judged=("COSTS 2",), sentence="COSTS 3")
    assert "COSTS" not in as_markdown(ticket(run, reasons))


def test_hostile_words_stay_text_in_the_line_where_they_stand(run: Run) -> None:
    lines = text_of(run, "n02").splitlines()
    assert not [line for line in lines if line.startswith("# own")]
    (row,) = {line for line in lines if "own" in line and line.startswith("| Hardware of n02")}
    assert row.replace("\\|", "").count("|") == 3
    assert not re.search(r"(?<!\\)[<`\[]", row)


def test_a_log_cannot_end_its_block(run: Run) -> None:
    lines = text_of(run).splitlines()
    assert "    | ``` </pre>" in lines
    assert "step 1 loss 10.4" not in lines


def test_a_zip_holds_the_text_the_measurements_of_peers_too_and_the_logs_and_is_the_same_each_time(run: Run) -> None:
    archive = zip_of(run)
    assert archive.namelist()[:2] == ["ticket.md", "measurements.csv"]
    assert [name for name in archive.namelist() if name.startswith("logs/")]
    table = archive.read("measurements.csv").decode()
    assert "n00/gpu0" in table
    assert "checkpoint.save" not in table
    assert archive.read("ticket.md").decode() == text_of(run)
    assert exported(run, "ticket", Wanted(zipped=True)).content == exported(run, "ticket", Wanted(zipped=True)).content


def test_where_nothing_failed_there_is_no_ticket(tmp_path: Path, run: Run) -> None:
    with pytest.raises(NoTicket, match="nothing failed on n00"):
        text_of(run, "n00")
    with pytest.raises(NoTicket, match="no node 'n99'"):
        text_of(run, "n99")


def test_a_record_that_is_not_whole_says_so_in_the_ticket(tmp_path: Path) -> None:
    header, records = make_run(nodes=4, accelerators=2, faults=["slow@n01/gpu1=0.7", "unfinished@cluster"])
    broken = read_run(write_records(tmp_path / "run", header, records))
    assert "> The record of this run is not whole" in text_of(broken)


def test_the_command_packs_a_ticket_where_the_name_ends_in_zip(run: Run, tmp_path: Path) -> None:
    for name in ("t.zip", "t.md"):
        result = CliRunner().invoke(
            cli, ["export", str(run.path), "--format", "ticket", "-o", str(tmp_path / name), "--node", "n01"]
        )
        assert result.exit_code == 0, result.output
    assert zipfile.is_zipfile(tmp_path / "t.zip")
    assert (tmp_path / "t.md").read_text() == text_of(run, "n01")
    wrong = CliRunner().invoke(cli, ["export", str(run.path), "--format", "ticket", "--node", "n77"])
    assert (wrong.exit_code, wrong.stderr.count("\n")) == (2, 1)
    assert CliRunner().invoke(cli, ["export", str(run.path), "--format", "csv", "--node", "n01"]).exit_code == 2
