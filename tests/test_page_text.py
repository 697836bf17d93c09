"""Text of a run made fit to be shown: one line where one is meant, several only in frames of their own."""

import re
from pathlib import Path

import msgspec
import pytest
from generated_runs import make_run, write_records
from hypothesis import given, settings
from hypothesis import strategies as st

from hwlottery.evidence import Event, read_run
from hwlottery.reports.page import render
from hwlottery.reports.plain_text import printable, printable_lines
from hwlottery.scoring import load_policy, score_run


@given(st.text(max_size=80))
@settings(max_examples=200, deadline=None)
def test_printable_text_is_one_line_whatever_it_was_made_of(text: str) -> None:
    assert len(printable(text).splitlines()) <= 1
    assert "\t" not in printable(text)


@given(st.lists(st.text(alphabet="abc ", min_size=1, max_size=9), min_size=1, max_size=5))
@settings(max_examples=50, deadline=None)
def test_a_document_keeps_its_lines(lines: list[str]) -> None:
    assert printable_lines("\r\n".join(lines)) == "\n".join(lines)


@pytest.mark.parametrize("character", ["\u202e", "\u2066", "\u200b", "\u200f", "\ufeff", "\x1b", "\x00"])
def test_what_turns_hides_or_steers_a_line_is_replaced(character: str) -> None:
    assert printable(f"a{character}b") == printable_lines(f"a{character}b") == "a\N{REPLACEMENT CHARACTER}b"


def test_a_line_end_leaves_a_mark_so_that_it_shows() -> None:
    assert printable("one\r\ntwo") == "one \N{DOWNWARDS ARROW WITH CORNER LEFTWARDS} two"


def test_on_the_page_only_documents_have_several_lines(tmp_path: Path) -> None:
    header, records = make_run(nodes=1, accelerators=1, policy_text="name: x\n# second line\n")
    time = records[-1].time if isinstance(records[-1], Event) else None
    assert time is not None
    records.append(Event(time=time, kind="note", severity="error", subject="n00", detail="one\nGO forged"))
    run = read_run(write_records(tmp_path / "run", header, records))
    verdict = score_run(run, load_policy("acceptance"))
    bad = msgspec.structs.replace(
        verdict.findings[0], result="fail", statement="say\nGO forged", observed="a\u2028GO forged", unit=""
    )
    page = render(run, msgspec.structs.replace(verdict, findings=(bad,), reasons=("why\x0bGO forged",)))
    assert "name: x\n# second line" in page
    assert "GO forged" in page
    assert not re.search(r"[\n\r\x0b\x0c\x85\u2028\u2029]GO forged", page)
