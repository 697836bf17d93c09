"""A run as people watch it: one moving line and a bar on a terminal, plain lines anywhere else."""

import contextlib
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar
from rich.text import Text

from .progress import Progress


class Live:
    """Shows each Progress it is called with. Use as a context manager around the run."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._bar = Bar(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[left]}"),
            TimeElapsedColumn(),
            console=console,
            transient=True,
            refresh_per_second=2,  # drawing costs CPU on a machine that is being measured
            disable=not console.is_terminal,
        )
        self._task = self._bar.add_task("starting", total=None, left="")
        self._last = ""

    def __enter__(self) -> "Live":
        self._bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        with contextlib.suppress(OSError):
            self._bar.stop()

    def __call__(self, progress: Progress) -> None:
        """Show how far the run is. Whoever watched may have left: that ends the showing, never the run."""
        try:
            self._show(progress)
        except OSError:
            self._console.quiet = True

    def _show(self, progress: Progress) -> None:
        if not self._console.is_terminal:
            self._plain_line(progress)
            return
        left = max(0.0, progress.expected_s - progress.done_s)
        self._bar.update(
            self._task,
            description=_described(progress),
            completed=progress.done_s,
            total=progress.expected_s or None,
            left=f"about {duration(left)} left" if progress.expected_s else "",
        )
        if progress.note and progress.note != self._last:
            self._last = progress.note
            self._bar.console.print(Text(progress.note, style="red"))

    def _plain_line(self, progress: Progress) -> None:
        line = _described(progress)
        if progress.note:
            line += f" ({progress.note})"
        if line != self._last and (progress.doing or progress.probe_number):
            self._last = line
            self._console.print(Text(line))


def _described(progress: Progress) -> str:
    """One line: which probe of how many, what it does, and on how many ranks."""
    place = f"[{progress.probe_number}/{progress.probes}] {progress.probe}"
    doing = f": {progress.doing.rpartition(':')[2].replace('_', ' ')}" if progress.doing else ""
    on = f" on {progress.ranks_busy} rank{'s' if progress.ranks_busy > 1 else ''}" if progress.ranks_busy else ""
    return place + doing + on


def duration(seconds: float) -> str:
    """A duration as people say it: 45 s, 12 min, 3.5 h."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
