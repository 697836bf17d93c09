"""A run as people watch it: three moving lines on a terminal, plain lines now and then anywhere else."""

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType

from rich.console import Console, Group
from rich.live import Live as Moving
from rich.progress_bar import ProgressBar
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from .progress import Progress

PLAIN_EVERY_S = 30.0  # of lines that tell the same probe's next round
LOST_EVERY_S = 5.0  # nodes that go together are told together
MOST_NAMES = 6
_WIDEST_BAR = 30
_WITHOUT_DIGITS = str.maketrans("", "", "0123456789")


class Live:
    """Shows each Progress it is called with. Use as a context manager around the run.

    `clock` gives seconds that only rise.
    """

    def __init__(self, console: Console, clock: Callable[[], float] = time.monotonic) -> None:
        self._console = console
        self._clock = clock
        self._began = clock()
        self._state: Progress | None = None
        self._spinner = Spinner("dots")
        # Drawing costs CPU on a machine that is being measured: twice a second is enough.
        self._moving = Moving(console=console, get_renderable=self._view, refresh_per_second=2, transient=True)
        self._told: tuple[str, str, int] = ("", "", 0)
        self._told_at = -PLAIN_EVERY_S
        self._lost_told: set[str] = set()
        self._lost_at = -LOST_EVERY_S

    def __enter__(self) -> "Live":
        if self._console.is_terminal:
            self._moving.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        with contextlib.suppress(OSError):
            if self._state is not None:
                self._tell_lost(self._state)
            if self._console.is_terminal:
                self._moving.stop()

    def __call__(self, progress: Progress) -> None:
        """Show how far the run is. Whoever watched may have left: that ends the showing, never the run."""
        self._state = progress
        try:
            if self._clock() - self._lost_at >= LOST_EVERY_S:
                self._tell_lost(progress)
            if not self._console.is_terminal:
                self._plain_line(progress)
        except OSError:
            self._console.quiet = True

    def _tell_lost(self, progress: Progress) -> None:
        new = [name for name in progress.nodes_lost if name not in self._lost_told]
        if new:
            self._lost_told.update(new)
            self._lost_at = self._clock()
            self._console.print(Text(f"lost: {_named(new)}", style="red"))

    # On a terminal ------------------------------------------------------------------------------------------------

    def _view(self) -> Group:
        if self._state is None:
            return Group()
        frame = self._spinner.render(self._clock())
        doing = Text.assemble(frame if isinstance(frame, Text) else "", " ", _doing(self._state))
        lines = [doing, self._bar(self._state), _line(", ".join(_who(self._state)))]
        lost = _named(self._state.nodes_lost)
        if lost:
            lines.append(_line(f"lost: {lost}", style="red"))
        for line in lines:
            if isinstance(line, Text):
                line.no_wrap, line.overflow = True, "ellipsis"
        return Group(*lines)

    def _bar(self, progress: Progress) -> Table | Text:
        words = ", ".join(self._times(progress))
        room = self._console.width - len(words) - 4
        if not progress.expected_s or room < 6:
            return _line(words)
        bar = ProgressBar(
            total=progress.expected_s, completed=min(progress.done_s, progress.expected_s), width=min(room, _WIDEST_BAR)
        )
        row = Table.grid(padding=(0, 1))
        row.add_row("", bar, Text(words, no_wrap=True))
        return row

    # Anywhere else ------------------------------------------------------------------------------------------------

    def _plain_line(self, progress: Progress) -> None:
        """A line when a probe begins to measure, or a new step of the start, and then at most one in half a minute."""
        starting = not progress.probe_number
        step = progress.doing.translate(_WITHOUT_DIGITS) if starting else progress.probe
        place = (step, *((progress.doing, progress.nodes_here) if starting else ("", progress.round)))
        due = place[0] != self._told[0] or self._clock() - self._told_at >= PLAIN_EVERY_S
        if due and place != self._told and (starting or progress.ranks_busy):
            self._told, self._told_at = place, self._clock()
            parts = [_doing(progress), *_who(progress), *self._times(progress)]
            self._console.print(Text(", ".join(parts)), soft_wrap=True)

    def _times(self, progress: Progress) -> Iterator[str]:
        yield f"{duration(self._clock() - self._began)} so far"
        if progress.expected_s:
            yield f"about {duration(max(0.0, progress.expected_s - progress.done_s))} left"


def _doing(progress: Progress) -> str:
    """Which probe of how many, and its round."""
    if not progress.probe_number:
        return progress.doing or progress.probe
    told = f"[{progress.probe_number}/{progress.probes}] {progress.probe}"
    if progress.rounds > 1 or progress.round > 1:
        # More rounds than the plan had are retests of what looked slow.
        of = f" of {progress.rounds}" if progress.round <= progress.rounds else ", retests"
        told += f": round {progress.round}{of}" if progress.round else ""
    return told


def _who(progress: Progress) -> Iterator[str]:
    """Ranks at work, and nodes that are here."""
    if progress.ranks:
        yield f"{progress.ranks_busy} of {progress.ranks} rank{'' if progress.ranks == 1 else 's'} busy"
    if progress.nodes > 1:
        yield f"{progress.nodes_here} of {progress.nodes} nodes here"


def _named(names: Sequence[str]) -> str:
    rest = len(names) - MOST_NAMES
    return ", ".join(names[:MOST_NAMES]) + (f" and {rest} more" if rest > 0 else "")


def _line(words: str, style: str = "") -> Text:
    return Text(f"  {words}", style=style)


def duration(seconds: float) -> str:
    """A duration as people say it: 45 s, 12 min, 3.5 h."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
