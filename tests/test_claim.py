"""A claim: outages by serial number with their clause and the days that are left; the same text on the same day."""

import re
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner
from generated_runs import START, make_run, write_records, write_run
from hypothesis import given
from hypothesis import strategies as st

from hwlottery.cli import cli
from hwlottery.evidence import Fact, Run, read_run
from hwlottery.reports.claim import NoClaim, as_markdown, claim
from hwlottery.scoring import score_run
from hwlottery.scoring.outages import Outage, claim_by, hours
from hwlottery.scoring.provider_record import ProviderRecord, record_from_text

END = datetime(2026, 11, 30, 16, tzinfo=UTC)
RECORD = """
price_per_gpu_hour: 3.4567
tickets:
  - {id: "11", node: n01, opened: 2026-11-29T00:00Z, solved: 2026-12-03T00:00Z, outage: true, what: fell off}
  - {id: "12", node: n03, opened: 2026-12-01T00:00Z, outage: true, clause: "5.1"}
  - {id: "13", node: n02, opened: 2026-12-01T00:00Z, what: a question}
sla: {claim_window_days: 10, clause: "4.2"}
clauses: {"4.2": Out is not charged., "5.1": Other., "6": Not used.}
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    header, records = make_run(nodes=12, accelerators=1, price=3.4567, faults=["lost@n01"])
    known = [Fact(subject=f"n0{index}", key="identity.product_serial", value=f"SN-{index}") for index in range(4)]
    found = read_run(write_records(tmp_path_factory.mktemp("claim") / "run", header, [*known, *records]))
    found.events[-1] = msgspec.structs.replace(found.events[-1], time=END)
    return found


def text_of(run: Run, today: date = date(2026, 12, 5), record: str = RECORD) -> str:
    return as_markdown(claim(run, score_run(run), record_from_text(record, "provider.yaml"), today))


def test_outages_of_the_run_and_of_tickets_stand_by_serial_number_with_their_clause_and_days_left(run: Run) -> None:
    text = text_of(run)
    lost = next(event.time for event in run.events if event.kind == "node_lost")
    assert START < lost < START + timedelta(hours=1)
    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == [
        "serial SN-1 (n01): 105 h",
        "serial SN-3 (n03): 120 h",
        "The clauses",
    ]
    rows = [line for line in text.splitlines() if line.startswith("| 2026")]
    assert len(rows) == 3, "a ticket without an outage is none"
    assert "| 2026-11-29 00:00 | 2026-12-03 00:00 | 96 | 4.2 | ticket 11 | 2026-12-13 | 8 days | fell off |" in rows
    assert "| 2026-12-01 00:00 | goes on | 120 | 5.1 | ticket 12 | — | — |  |" in rows
    assert "Not used" not in text
    assert "Out is not charged" in text


def test_an_outage_that_the_run_saw_ends_with_the_run(run: Run) -> None:
    (row,) = [line for line in text_of(run).splitlines() if "run generated-1 |" in line and line.startswith("| 2026")]
    assert "| 2026-11-30 16:00 |" in row


def test_days_run_out(run: Run) -> None:
    for today, left in (
        (date(2026, 12, 12), "1 day"),
        (date(2026, 12, 13), "last day"),
        (date(2026, 12, 14), "too late"),
    ):
        assert f"| ticket 11 | 2026-12-13 | {left} |" in text_of(run, today)


def test_no_price_stands_in_a_claim(run: Run) -> None:
    assert "3.4567" not in text_of(run)
    assert "usd" not in text_of(run).lower()


def test_without_a_record_or_an_outage_there_is_no_claim(run: Run, tmp_path: Path) -> None:
    with pytest.raises(NoClaim, match=r"no claim without .*/provider\.yaml"):
        claim(run, score_run(run), None, date(2026, 12, 5))
    well = read_run(write_run(tmp_path / "run", nodes=4, accelerators=1))
    with pytest.raises(NoClaim, match="no outage"):
        claim(well, score_run(well), ProviderRecord(), date(2026, 12, 5))


def test_the_command_takes_the_day_and_the_record_and_gives_the_same_text_each_time(run: Run, tmp_path: Path) -> None:
    bare = CliRunner().invoke(cli, ["export", str(run.path), "--format", "claim"])
    assert (bare.exit_code, bare.stderr.count("\n")) == (2, 1)
    (tmp_path / "p.yaml").write_text(RECORD)
    args = ["export", str(run.path), "--format", "claim", "--provider-record", str(tmp_path / "p.yaml")]
    first, second = (CliRunner().invoke(cli, [*args, "--today", "2026-12-05"]) for _ in range(2))
    assert first.exit_code == 0, first.output
    assert first.stdout == second.stdout
    assert "As of: 2026-12-05" in first.stdout


def test_hostile_words_stay_in_their_cell(run: Run) -> None:
    words = "x|y`z` <img src=x> [a](b)\\n# own"
    text = text_of(run, record=RECORD.replace("fell off", f'"{words}"').replace("Other.", f'"{words}"'))
    assert not [line for line in text.splitlines() if line.startswith("# own")]
    (row,) = [line for line in text.splitlines() if line.startswith("| 2026") and "own" in line]
    assert row.replace("\\|", "").count("|") == 9
    assert not re.search(r"(?<!\\)[<`\[]", row)


SPANS = st.lists(st.tuples(st.integers(0, 500), st.integers(0, 500)), min_size=1, max_size=12)


@given(SPANS)
def test_hours_that_overlap_count_once(spans: list[tuple[int, int]]) -> None:
    found = [
        Outage(
            node="n",
            start=START + timedelta(hours=at),
            end=START + timedelta(hours=at + took),
            why="",
            source="",
            clause=None,
        )
        for at, took in spans
    ]
    covered = {hour for at, took in spans for hour in range(at, at + took)}
    assert hours(found, START) == pytest.approx(len(covered))


def test_the_window_begins_with_the_end_of_an_outage_in_utc() -> None:
    late = datetime(2026, 12, 1, 1, tzinfo=UTC)
    outage = Outage(node="n", start=START, end=late, why="", source="", clause=None)
    assert claim_by(outage, 30) == date(2026, 12, 31)
    assert claim_by(outage, None) is None


def test_an_outage_is_claimed_of_the_hardware_that_had_it_and_not_of_what_came_in_its_place(run: Run) -> None:
    swap = "{{node: n03, asked: {0}T00:00Z, replaced: {0}T06:00Z, serial_out: OLD, serial_in: NEW}}"
    for day, owner in (("2026-11-20", "serial OLD"), ("2026-12-01", "serial SN-3")):
        text = text_of(run, record=f"replaced: [{swap.format(day)}]\n")
        assert f"## {owner} (n03): 6 h" in text
    after = RECORD + f"replaced: [{swap.format('2026-11-30').replace('T06', 'T16')}]\n"
    assert "## serial NEW (n03): 120 h" in text_of(run, record=after), "replaced while the run was on, out after that"
