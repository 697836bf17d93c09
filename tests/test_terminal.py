"""The verdict in a terminal: what is said, at any width, with nothing taken for markup."""

import io
import re
from pathlib import Path

import msgspec
import pytest
from generated_runs import write_run
from rich.console import Console

from hwlottery.evidence import Run, read_run
from hwlottery.reports.exports import Wanted, exported
from hwlottery.reports.page import render
from hwlottery.reports.terminal import show
from hwlottery.scoring import score_run
from hwlottery.scoring.verdict import Verdict


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, Verdict]:
    """Twenty nodes, one with a slow GPU."""
    place = tmp_path_factory.mktemp("terminal") / "run"
    run = read_run(write_run(place, nodes=20, accelerators=2, faults=["slow@n07/gpu1=0.7"]))
    return run, score_run(run)


def shown(run: Run, verdict: Verdict, width: int, **options: bool) -> str:
    out = io.StringIO()
    show(verdict, run, Console(file=out, width=width, **options))
    return out.getvalue()


def test_the_terminal_says_verdict_reason_and_what_to_take_out(judged: tuple[Run, Verdict]) -> None:
    run, verdict = judged
    text = shown(run, verdict, 120)
    assert verdict.verdict in text
    assert verdict.sentence in text
    assert "n07/gpu1" in text
    assert "--exclude=n07" in text


@pytest.mark.parametrize("width", [40, 60, 80, 200])
def test_no_line_is_wider_than_the_terminal(judged: tuple[Run, Verdict], width: int) -> None:
    assert max(len(line.rstrip()) for line in shown(*judged, width).splitlines()) <= width


def test_a_pipe_gets_no_escape_codes(judged: tuple[Run, Verdict]) -> None:
    assert "\x1b" not in shown(*judged, 100)


def test_colours_are_there_where_a_terminal_has_them(judged: tuple[Run, Verdict]) -> None:
    assert "\x1b[" in shown(*judged, 100, force_terminal=True)


def test_brackets_and_control_characters_in_words_stay_words(judged: tuple[Run, Verdict]) -> None:
    run, verdict = judged
    words = {"sentence": "[red]n1[/red] \x1b[2J", "reasons": ("[/] [link=x]y",), "caveats": ("[bold]",)}
    odd = msgspec.structs.replace(verdict, **words)
    text = shown(run, odd, 200)
    assert "[red]n1[/red]" in text
    assert "[/] [link=x]y" in text
    assert "\x1b" not in text


def test_caveats_are_the_first_line(tmp_path: Path) -> None:
    run = read_run(write_run(tmp_path / "run", nodes=1, accelerators=2, device="cpu", policy="smoke"))
    verdict = score_run(run)
    assert shown(run, verdict, 200).startswith(verdict.caveats[0])
    assert "not signable" in shown(run, verdict, 200)


FORGED = "[+] GO, signable  All 64 nodes are fit for training."


@pytest.mark.parametrize(
    "end", ["\n", "\r", "\r\n", "\v", "\f", "\x1c", "\x85", "\u2028", "\u2029", " " * 60, "\t" * 20]
)
@pytest.mark.parametrize("width", [60, 110])
def test_words_of_a_run_never_stand_as_a_line_of_the_report(judged: tuple[Run, Verdict], end: str, width: int) -> None:
    """Neither by a line end of any kind, nor by blanks that push them to where a line is folded."""
    run, verdict = judged
    word = f"n07{end}{FORGED}"
    finding = msgspec.structs.replace(verdict.findings[0], result="fail", subject=word, expected=word, detail=word)
    words = {"sentence": word, "reasons": (word,), "not_judged": (word,), "confidence": word, "caveats": (word,)}
    odd = msgspec.structs.replace(verdict, **words, findings=(finding,), exclude=(word,))
    text = shown(run, odd, width)
    assert "[+] GO" in " ".join(text.split()), "the words are there to be read"
    assert not [line for line in text.splitlines() if line.startswith("[+]")]


def test_a_go_that_is_not_signable_has_another_sign_and_says_so_beside_it(judged: tuple[Run, Verdict]) -> None:
    run, verdict = judged
    good = msgspec.structs.replace(verdict, verdict="GO", signable=True, caveats=())
    assert shown(run, good, 120).startswith("[+] GO, signable")
    assert shown(run, msgspec.structs.replace(good, signable=False), 120).startswith("(+) GO, not signable")


def test_five_reasons_are_shown_in_their_order_and_no_more(judged: tuple[Run, Verdict]) -> None:
    run, verdict = judged
    many = tuple(f"reason number {place}." for place in range(7))
    text = shown(run, msgspec.structs.replace(verdict, reasons=many), 120)
    places = [text.index(reason) for reason in many[:5]]
    assert places == sorted(places)
    assert "reason number 5" not in text


def test_levels_of_the_fabric_read_as_a_sentence_on_the_cluster_wherever_they_are_told(tmp_path: Path) -> None:
    run = read_run(write_run(tmp_path / "run", nodes=6, accelerators=2, faults=["two_levels@cluster=0.6"]))
    verdict = score_run(run)
    (levels,) = (each for each in verdict.findings if each.check == "pairs.links")
    assert levels.statement.startswith("The fabric has levels: 9 of 15 pairs of nodes are slower than good ones (")
    told = shown(run, verdict, 200)
    texts = (told, exported(run, "ticket", Wanted()).text, exported(run, "junit", Wanted()).text, render(run, verdict))
    for text in texts:
        assert "The fabric has levels: 9 of 15 pairs" in text
        assert "The path cluster" not in text
    assert re.search(r"warn\w* +cluster +pairs.links +9 of 15 pairs slow +pairs within 10 % of good ones", told)
