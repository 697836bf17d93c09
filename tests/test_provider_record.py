"""provider.yaml: what is written down of a provider, held against what was promised; and it may be hostile."""

import os
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner
from generated_runs import write_run
from hypothesis import given
from hypothesis import strategies as st
from test_page_safety import HOSTILE, Outline

from hwlottery.cli import cli
from hwlottery.evidence import Run, read_run
from hwlottery.reports.measured import Measured
from hwlottery.reports.page import render
from hwlottery.reports.sections.delivery import delivery
from hwlottery.scoring import load_policy, policy_from_text, score_run
from hwlottery.scoring.delivery import Delivery, delivery_of, judged_delivery
from hwlottery.scoring.policy_terms import Terms
from hwlottery.scoring.provider_record import ProviderFileError, ProviderRecord, provider_of, record_from_text

WHOLE = """
provider: Provider A
cluster: fra-2
price_per_gpu_hour: 2.10
promised: {date: 2026-11-20, nodes: 8}
delivered:
  - {date: 2026-11-22, nodes: 6}
  - {date: 2026-11-25, nodes: 2}
tickets:
  - {id: "1", node: n01, opened: 2026-11-26T09:00Z, answered: 2026-11-26T10:00Z,
     solved: 2026-11-26T19:00Z, blamed: buyer}
  - {id: "2", nodes: [n02, n03], opened: 2026-11-26T09:00:00Z, answered: 2026-11-26T12:00Z, solved: 2026-11-27T09:00Z}
  - {id: "3", node: n01, opened: 2026-11-26T09:00+02:00, answered: 2026-11-26T15:00Z, blamed: buyer}
replaced:
  - {node: n01, asked: 2026-11-27T00:00Z, replaced: 2026-11-28T06:00Z, serial_out: A, serial_in: B}
checkpoints_lost: [{date: 2026-11-27, what: all of run7}]
stack_changes: [{date: 2026-11-28, what: driver 570 to 550}]
sla: {clause: "4.2", availability: 0.99, answer_hours: 4, solve_hours: 72, replacement_hours: 24, claim_window_days: 30}
clauses: {"4.2": A node that is out is not charged.}
"""
NOTHING_AGREED = Terms()


def found(text: str = WHOLE, terms: Terms = NOTHING_AGREED, as_of: date = date(2026, 11, 28)) -> Delivery:
    return delivery_of(record_from_text(text, "provider.yaml"), terms, as_of)


def kept(delivered: Delivery) -> dict[str, str]:
    return {each.name: each.kept for each in delivered.promises}


def ended(run: Run) -> Run:
    """The run with an end of its own time, not of the test's."""
    run.events[-1] = msgspec.structs.replace(run.events[-1], time=datetime(2026, 11, 30, 15, tzinfo=UTC))
    return run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return ended(read_run(write_run(tmp_path_factory.mktemp("provider") / "run", nodes=4, accelerators=1)))


def test_dates_and_nodes_are_counted_to_the_day_on_which_all_were_there() -> None:
    told = found()
    assert (told.delivered_nodes, told.delivered_date, told.days_late) == (8, date(2026, 11, 25), 5)
    assert kept(told)["delivery"] == "broken"
    assert kept(told)["nodes"] == "kept"


def test_times_are_exact_and_an_open_ticket_waits() -> None:
    told = found()
    assert (told.answering.median, told.answering.worst) == (3.0, 8.0)
    assert (told.solving.count, told.solving.mean, told.solving.worst, told.solving.waiting) == (2, 17.0, 24.0, 1)
    assert told.solving.longest_wait == pytest.approx(2 * 24 + 17, abs=0.01)
    assert told.blamed == {"buyer": 2}
    assert (told.checkpoints_lost, told.stack_changes) == (1, 1)
    assert kept(told) == {
        "delivery": "broken",
        "nodes": "kept",
        "answers to tickets": "broken",
        "tickets solved": "open",
        "nodes replaced": "broken",
    }


def test_the_contract_goes_before_what_the_record_says_was_promised() -> None:
    terms = Terms(nodes=9, delivery=date(2026, 11, 30), replacement_hours=48)
    told = found(terms=terms)
    assert (told.promised_nodes, told.promised_date) == (9, date(2026, 11, 30))
    assert kept(told)["nodes"] == "open", "the day has not come"
    assert kept(told)["nodes replaced"] == "kept"
    assert kept(found(terms=terms, as_of=date(2026, 12, 2)))["nodes"] == "broken"
    assert found(terms=terms, as_of=date(2026, 12, 2)).days_late == 2


def test_a_ticket_that_waits_longer_than_promised_breaks_the_promise_before_it_is_solved() -> None:
    assert kept(found(as_of=date(2026, 11, 29)))["tickets solved"] == "broken"


def test_what_was_not_promised_is_not_judged_and_what_was_not_recorded_is_open() -> None:
    assert found("provider: A\n").promises == ()
    told = found("promised: {date: 2026-11-20, nodes: 8}\n")
    assert kept(told) == {"delivery": "open", "nodes": "open"}
    assert told.days_late is None
    assert told.delivered_nodes is None


def test_the_terms_of_the_example_contract_are_used() -> None:
    text = load_policy("contract").text
    terms = policy_from_text(text, "contract").terms
    told = found(terms=terms)
    assert told.promised_nodes == terms.nodes == 16
    assert told.promised_date == terms.delivery


HOURS = st.integers(0, 2000)


@given(st.lists(st.tuples(HOURS, HOURS), min_size=1, max_size=20))
def test_the_worst_is_never_better_than_the_median_or_the_mean(spans: list[tuple[int, int]]) -> None:
    start = datetime(2026, 1, 1, tzinfo=UTC)
    tickets = [
        {"id": str(place), "opened": start + timedelta(hours=at), "solved": start + timedelta(hours=at + took)}
        for place, (at, took) in enumerate(spans)
    ]
    told = delivery_of(ProviderRecord.model_validate({"tickets": tickets}), NOTHING_AGREED, date(2027, 1, 1)).solving
    assert told.count == len(spans)
    assert told.worst is not None
    assert told.median is not None
    assert told.mean is not None
    assert told.worst == max(took for _, took in spans)
    assert max(told.median, told.mean) <= told.worst + 1e-9


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("provder: A", "provder: unknown key, did you mean provider? (choices: provider, cluster"),
        ("tickets: [{id: a, opened: 2026-01-01T00:00Z, blamd: us}]", "blamd: unknown key, did you mean blamed? (choi"),
        ("tickets: [{id: a, opened: 2026-01-01T00:00Z, blamed: us}]", "'provider', 'buyer'"),
        ("tickets: [{id: a, opened: 2026-01-01 00:00:00}]", "timezone"),
        ("tickets: [{id: a, opened: 2026-01-02T00:00Z, solved: 2026-01-01T00:00Z}]", "solved before"),
        ("tickets: [{id: a, opened: 2026-01-02T00:00Z, outage: true}]", "an outage is of a node"),
        ("sla: {clause: x}\nclauses: {y: text}", "clause 'x' has no text (choices: y)"),
        ("", "provider.yaml: it is empty (keys: provider, cluster,"),
        ("tickets: {}", "tickets: should be a list ([a, b], or lines that begin with -), not keys with values"),
        ("promised: {date: 2026-01-01, nodes: 9999999999999}", "promised.nodes"),
        ("promised: {date: 9999-01-01, nodes: 1}", "promised.date"),
        ("sla: {answer_hours: .nan}", "no finite number"),
        ("sla: {answer_hours: 1e9}", "sla.answer_hours"),
        ("price_per_gpu_hour: -1", "price_per_gpu_hour"),
        ("currency: dollars", "currency"),
        ("a: &a [x]\nb: *a", "aliases"),
        ("a: " + "[" * 50 + "]" * 50, "nested deeper"),
        ("a: " + "9" * 5000, "provider.yaml"),
        ("provider: " + "x" * 300_000, "over 256 KiB"),
        ("!!python/object/apply:os.system [id]", "tags"),
        ("- a\n- b", "provider.yaml: the file"),
        ("provider: A\n---\nprovider: B", "provider.yaml"),
        ("\x00", "provider.yaml"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_one_line_that_names_file_key_and_choices(
    run: Run, tmp_path: Path, text: str, told: str
) -> None:
    file = tmp_path / "provider.yaml"
    file.write_text(text)
    result = CliRunner().invoke(cli, ["report", str(run.path), "--provider-record", str(file)])
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
    assert "provider.yaml" in result.stderr
    assert told in result.stderr
    assert len(result.stderr) < 1000


def test_beside_a_run_no_link_pipe_or_huge_file_is_read(tmp_path: Path) -> None:
    place = tmp_path / "provider.yaml"
    assert provider_of(tmp_path, None) is None
    (tmp_path / "other").write_text("provider: A")
    for make, told in (
        (lambda: place.symlink_to(tmp_path / "other"), "not followed"),
        (lambda: os.mkfifo(place), "no plain file"),
        (place.mkdir, "no plain file"),
        (lambda: os.truncate(os.open(place, os.O_CREAT | os.O_RDWR), 10**11), "over 256 KiB"),
        (lambda: place.write_bytes(b"\xff\xfe"), "not UTF-8"),
    ):
        make()
        with pytest.raises(ProviderFileError, match=told):
            provider_of(tmp_path, None)
        place.rmdir() if place.is_dir() and not place.is_symlink() else place.unlink()
    (tmp_path / "link").symlink_to(tmp_path / "other")
    given_one = provider_of(tmp_path, tmp_path / "link")
    assert given_one is not None, "the user's own link is followed"


def test_the_section_says_what_was_broken_and_shows_each_ticket(run: Run) -> None:
    section = delivery(Measured(run), record_from_text(WHOLE, "provider.yaml"))
    assert section.answer.startswith("4 of 5 promises broken: delivery: on 2026-11-25, 5 days late")
    shown = {table.caption: table for part in section.parts for table in part.tables}
    assert [row[0].text for row in shown["Tickets"].rows] == ["3", "1", "2"]
    assert "MTTR" in str(shown["How long it took"])
    assert "all of run7" in str(shown)


def test_what_the_run_itself_saw_last_is_the_day_that_counts(run: Run) -> None:
    told = judged_delivery(run, record_from_text("promised: {date: 2026-11-20, nodes: 4}\ndelivered: []\n", "p"))
    assert run.ended is not None
    assert told.as_of == run.ended.date()


def test_without_a_record_the_section_says_how_to_make_one_and_the_stack_is_shown_all_the_same(run: Run) -> None:
    section = delivery(Measured(run), None)
    assert "provider-template" in section.answer
    assert "first all-reduce" in section.parts[-1].answer


def test_the_template_is_a_valid_record_with_what_the_run_knows(tmp_path: Path, run: Run) -> None:
    text = CliRunner().invoke(cli, ["export", str(run.path), "--format", "provider-template"]).stdout
    record = record_from_text(text, "provider.yaml")
    assert (record.provider, record.cluster) == ("Provider A", "fra-2")
    lines = (line.removeprefix("# ") for line in text.splitlines()[2:] if not line.startswith("sla: {}"))
    whole = record_from_text("\n".join(lines), "provider.yaml")
    assert (whole.tickets[0].concerns, whole.sla.claim_window_days) == (("n17",), 30)


def test_hostile_words_of_a_record_stay_text_on_the_page(run: Run, tmp_path: Path) -> None:
    words = HOSTILE.removesuffix("\x07")
    record = ProviderRecord.model_validate(
        {
            "provider": words,
            "tickets": [{"id": words, "node": words, "opened": "2026-01-01T00:00Z", "what": words}],
            "stack_changes": [{"date": "2026-01-01", "what": words}],
        }
    )
    outline = Outline(render(run, score_run(run), record))
    assert outline.all("img") == []
    assert len(outline.all("script")) == len(outline.all("style")) == 1
    assert words in outline.text


def test_a_hostile_name_in_a_run_stays_a_name_in_the_template(run: Run) -> None:
    from hwlottery.reports import provider_template

    odd = 'x\nsla: {answer_hours: 1}\n"#'
    header = msgspec.structs.replace(run.header, provider=odd, cluster="*a")
    record = record_from_text(provider_template.render(msgspec.structs.replace(run, header=header)), "p")
    assert record.sla.answer_hours is None
    assert record.cluster == "*a"
    assert record.provider.startswith("x")


def test_the_verdict_is_the_same_with_and_without_a_record(run: Run) -> None:
    before = score_run(run)
    (run.path / "provider.yaml").write_text(WHOLE)
    assert score_run(read_run(run.path)) == before
    (run.path / "provider.yaml").unlink()


def test_score_says_what_was_broken_beside_the_verdict_and_exits_with_the_verdict(run: Run, tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text(WHOLE)
    bare = CliRunner().invoke(cli, ["score", str(run.path)])
    told = CliRunner().invoke(cli, ["score", str(run.path), "--provider-record", str(tmp_path / "p.yaml")])
    assert told.exit_code == bare.exit_code
    assert "Delivery and support: 4 of 5 promises broken" in " ".join(told.stdout.split())
    assert "Delivery and support" not in bare.stdout


def test_a_broken_record_beside_a_run_does_not_keep_anybody_from_the_verdict(tmp_path: Path) -> None:
    place = write_run(tmp_path / "run", nodes=2, accelerators=1)
    bare = CliRunner().invoke(cli, ["score", str(place)])
    (place / "provider.yaml").write_text("provder: \x1b[31mA")
    told = CliRunner().invoke(cli, ["score", str(place)])
    assert (told.exit_code, told.stdout) == (bare.exit_code, bare.stdout)
    assert told.stderr.startswith("note: provider.yaml: ")
    assert "\x1b" not in told.stderr
    assert CliRunner().invoke(cli, ["report", str(place)]).exit_code == 2, "the page would lack what it is asked for"
