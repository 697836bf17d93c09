"""The live view of a run: what a terminal shows at any width, and how few lines a log file gets."""

import io
from collections.abc import Iterator

import msgspec
import pytest
from rich.console import Console

from hwlottery.runner.live import Live
from hwlottery.runner.progress import Progress

STATE = Progress(
    probe="pairs",
    probe_number=4,
    probes=10,
    round=12,
    rounds=63,
    ranks=512,
    ranks_busy=512,
    nodes=64,
    nodes_here=64,
    done_s=600.0,
    expected_s=3600.0,
)


class Clock:
    """Seconds that rise when told to."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def on_terminal(state: Progress, width: int = 100, so_far: float = 720.0) -> list[str]:
    """The view as lines, as the terminal shows it last."""
    clock = Clock()
    console = Console(file=io.StringIO(), width=width, force_terminal=True, color_system=None)
    live = Live(console, clock)
    clock.now = so_far
    live(state)
    with console.capture() as captured:
        console.print(live._view())
    return captured.get().rstrip("\n").split("\n")


def plain(states: Iterator[tuple[float, Progress]]) -> list[str]:
    """What a file gets of states at these seconds."""
    clock, out = Clock(), io.StringIO()
    with Live(Console(file=out, width=80), clock) as live:
        for now, state in states:
            clock.now = now
            live(state)
    return out.getvalue().splitlines()


def with_(**changes: object) -> Progress:
    return msgspec.structs.replace(STATE, **changes)


def test_a_terminal_shows_probe_round_time_ranks_and_nodes_in_three_lines() -> None:
    probe, time, who = on_terminal(STATE)
    assert probe.endswith("[4/10] pairs: round 12 of 63")
    assert "━" in time
    assert time.rstrip().endswith("12 min so far, about 50 min left")
    assert who == "  512 of 512 ranks busy, 64 of 64 nodes here"


def test_lost_nodes_are_named_up_to_six_and_the_rest_counted() -> None:
    lost = tuple(f"n{number:02d}" for number in range(1, 10))
    lines = on_terminal(with_(nodes_here=55, nodes_lost=lost))
    assert lines[2].endswith("55 of 64 nodes here")
    assert lines[3] == "  lost: n01, n02, n03, n04, n05, n06 and 3 more"


def test_rounds_beyond_the_plan_are_called_retests_and_an_unknown_number_is_left_open() -> None:
    assert on_terminal(with_(round=66))[0].endswith("round 66, retests")
    assert on_terminal(with_(round=2, rounds=0))[0].endswith("pairs: round 2, retests")
    assert on_terminal(with_(round=1, rounds=1))[0].endswith("[4/10] pairs")


def test_while_nodes_join_their_number_is_shown() -> None:
    joining = Progress(probe="start", probe_number=0, probes=10, doing="starting nodes", nodes=64, nodes_here=17)
    lines = on_terminal(joining, so_far=9)
    assert lines[0].endswith("starting nodes")
    assert "9 s so far" in lines[1]
    assert lines[2].strip() == "17 of 64 nodes here"


def test_a_run_without_an_estimate_shows_no_time_left_and_no_bar() -> None:
    line = on_terminal(with_(expected_s=0.0))[1]
    assert line == "  12 min so far"


@pytest.mark.parametrize("width", [20, 40, 60, 80, 200])
def test_no_line_is_wider_than_the_terminal_and_none_wraps(width: int) -> None:
    lost = tuple(f"gpu-node-{number:04d}" for number in range(64))
    lines = on_terminal(with_(nodes_lost=lost, nodes_here=0), width=width)
    assert len(lines) == 4
    assert max(map(len, lines)) <= width


def test_names_of_nodes_are_never_taken_for_markup() -> None:
    assert on_terminal(with_(nodes_lost=("[red]n1[/red]",)))[3] == "  lost: [red]n1[/red]"


def test_a_file_gets_a_line_a_probe_and_one_in_half_a_minute_not_one_a_round() -> None:
    def rounds() -> Iterator[tuple[float, Progress]]:
        for number in range(1, 512):
            yield number / 5, with_(round=number, rounds=511)
            yield number / 5 + 0.1, with_(round=number, rounds=511, ranks_busy=0)

    lines = plain(rounds())
    assert len(lines) == 4
    assert lines[0].startswith("[4/10] pairs: round 1 of 511, 512 of 512 ranks busy, 64 of 64 nodes here, 0 s so far")
    assert "round 151 of 511" in lines[1]
    assert all("\x1b" not in line for line in lines)


def test_a_file_is_told_now_and_then_how_many_nodes_have_joined() -> None:
    start = Progress(probe="start", probe_number=0, probes=10, doing="starting nodes", nodes=512)
    lines = plain((number / 8, msgspec.structs.replace(start, nodes_here=number)) for number in range(512))
    assert [line.split(",")[1] for line in lines] == [
        " 0 of 512 nodes here",
        " 240 of 512 nodes here",
        " 480 of 512 nodes here",
    ]


def test_a_probe_that_is_left_out_gets_no_line() -> None:
    left_out = with_(probe="tools", probe_number=5, round=0, ranks_busy=0)
    lines = plain(
        iter([(0.0, STATE), (1.0, left_out), (2.0, with_(probe="burn_in", probe_number=6, round=1, rounds=1))])
    )
    assert [line.split(",")[0] for line in lines] == ["[4/10] pairs: round 12 of 63", "[6/10] burn_in"]


def test_nodes_that_are_lost_one_after_the_other_are_told_together_and_none_is_forgotten() -> None:
    def going() -> Iterator[tuple[float, Progress]]:
        yield 0.0, STATE
        for number in range(1, 513):
            yield number / 100, with_(nodes_lost=tuple(f"n{at}" for at in range(number)), nodes_here=512 - number)

    lines = [line for line in plain(going()) if line.startswith("lost:")]
    assert lines[0] == "lost: n0"
    assert len(lines) <= 4
    told = [1 + sum(1 for _ in lines[0].split(",")[1:])] + [
        line.count(",") + 1 + int(line.rpartition(" and ")[2].split()[0]) for line in lines[1:]
    ]
    assert sum(told) == 512


def test_lines_longer_than_the_console_are_not_broken_in_a_file() -> None:
    (line,) = plain(iter([(0.0, STATE)]))
    assert len(line) > 80


def test_whoever_watched_may_leave_without_ending_the_run() -> None:
    class Gone(io.StringIO):
        def write(self, text: str) -> int:
            raise OSError("the terminal is gone")

    with Live(Console(file=Gone(), width=80)) as live:
        live(STATE)
        live(with_(probe="burn_in", probe_number=6))
