"""The verdict in a terminal: what is said, at any width, with nothing taken for markup."""

import io
from pathlib import Path

import msgspec
import pytest
from generated_runs import write_run
from rich.console import Console

from hwlottery.evidence import Run, read_run
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
