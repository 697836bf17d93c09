"""Rolling coverage as a picture: a row a node, a mark a run, the days that count as a band.

The names stand at the right, beside the days that count: where the picture is wider than the screen, that end is shown.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any
from xml.etree import ElementTree as ET

from markupsafe import Markup

from ..scoring.history import ClusterHistory, Covered, History, Visit
from ..scoring.words import counted
from .history_words import gap
from .layout import Chart
from .plain_text import listed, natural, printable

MOST_ROWS = 40
_WINDOWS = 8  # how many times the days that count are drawn
_LEFT, _RIGHT, _TOP, _ROW, _WIDE = 40, 240, 14, 22, 640
_MARKS = {
    "partner": ("M-4.5 0a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0 -9 0z", "fill-fine stroke-fine", "measured with a partner"),
    "alone": ("M-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z", "fill-none stroke-muted", "measured alone"),
    "failed": ("M0 -6.5L6.5 0L0 6.5L-6.5 0z", "fill-bad stroke-bad", "failed a required check"),
    "absent": ("M-4 -4L4 4M-4 4L4 -4", "fill-none stroke-bad", "promised, and not measured"),
}
_KEY = "● measured with a partner, ○ alone, ◆ failed a required check, ✕ promised and not measured."


def coverage_chart(cluster: ClusterHistory, history: History) -> Chart:
    """Who was measured when: first those whose coverage lacks something, then those that failed, then by name."""
    rows = sorted(cluster.coverage, key=_first)
    shown = rows[:MOST_ROWS]
    title = _title(cluster, history)
    left_out = counted(len(rows) - len(shown), "more node") if len(rows) > len(shown) else ""
    note = f"{_KEY} Shaded: the last {history.days:g} days. Rows are machines, by the name they have now."
    note += f" {left_out}, of which {_gaps(rows[MOST_ROWS:])}: the table has them." if left_out else ""
    return Chart(title=title, svg=_Drawing(shown, cluster, history, title).svg, note=note)


def _first(one: Covered) -> tuple[bool, bool, Any]:
    failed = bool(one.visits) and one.visits[-1].found == "failed"
    return (not one.missing, not failed, natural(one.node))


def _title(cluster: ClusterHistory, history: History) -> str:
    gaps, nodes = cluster.uncovered, counted(len(cluster.coverage), "node")
    if not gaps:
        return f"All of {nodes} measured within {history.days:g} days, each with a partner where there is one"
    names = listed([printable(one.node, 40) for one in gaps], 4)
    return f"{len(gaps)} of {nodes} not covered within {history.days:g} days: {names}"


def _gaps(rows: Sequence[Covered]) -> str:
    return f"{sum(bool(one.missing) for one in rows):,} not covered"


class _Drawing:
    """The picture while it is made: time goes from left to right."""

    def __init__(self, rows: Sequence[Covered], cluster: ClusterHistory, history: History, title: str) -> None:
        self.end, self.window = history.at, timedelta(days=history.days)
        first = min((run.started for run in cluster.runs), default=history.at)
        self.start = max(first - self.window / 20, self.end - _WINDOWS * self.window)
        self.start = min(self.start, self.end - self.window * 1.1)
        self.bottom = _TOP + _ROW * len(rows)
        self._made = self._ground(f"{title}. {'; '.join(f'{one.node}: {_told(one)}' for one in rows)}")
        for place, one in enumerate(rows):
            self._row(one, _TOP + _ROW * (place + 0.5))
        self._axis()

    @property
    def svg(self) -> Markup:
        """The markup, of which every text went through ElementTree."""
        return Markup(ET.tostring(self._made, encoding="unicode"))  # noqa: S704

    def _ground(self, label: str) -> ET.Element:
        width, height = _LEFT + _WIDE + _RIGHT, self.bottom + 26
        size = {"viewBox": f"0 0 {width} {height}", "width": str(width), "height": str(height)}
        made = ET.Element("svg", {**size, "role": "img", "aria-label": printable(label, 600)})
        x = self._x(self.end - self.window)
        band = {"x": f"{x:.1f}", "y": str(_TOP - 4), "width": f"{_LEFT + _WIDE - x:.1f}"}
        ET.SubElement(made, "rect", {**band, "height": str(self.bottom - _TOP + 8), "class": "fill-rule"})
        return made

    def _x(self, time: datetime) -> float:
        return _LEFT + _WIDE * ((time - self.start) / (self.end - self.start))

    def _row(self, one: Covered, y: float) -> None:
        tone = "bad" if one.missing else "muted"
        ET.SubElement(self._made, "path", {"d": f"M{_LEFT} {y:g}H{_LEFT + _WIDE}", "class": "stroke-rule"})
        for visit in one.visits:
            if visit.time >= self.start:
                self._mark(visit, y)
        self._text(_LEFT + _WIDE + 12, y + 4, f"{printable(one.node, 16)}: {_told(one)}", tone=tone)

    def _mark(self, visit: Visit, y: float) -> None:
        path, tone, words = _MARKS[visit.found]
        place = {"transform": f"translate({self._x(visit.time):.1f} {y:g})", "d": path, "stroke-width": "1.5"}
        mark = ET.SubElement(self._made, "path", {**place, "class": tone})
        ET.SubElement(mark, "title").text = f"{visit.time:%Y-%m-%d %H:%M} UTC: {words}"

    def _axis(self) -> None:
        """Dates at a few whole windows before the end."""
        windows = int((self.end - self.start) / self.window)
        step = max(1, -(-windows // 4))
        for count in range(0, windows + 1, step):
            time = self.end - count * self.window
            self._text(self._x(time), self.bottom + 18, f"{time:%Y-%m-%d}", anchor="middle" if count else "end")

    def _text(self, x: float, y: float, words: str, *, anchor: str = "start", tone: str = "muted") -> None:
        place = {"x": f"{x:g}", "y": f"{y:g}", "text-anchor": anchor, "font-size": "12", "class": f"fill-{tone}"}
        if tone == "bad":
            place["font-weight"] = "bold"
        ET.SubElement(self._made, "text", place).text = words


def _told(one: Covered) -> str:
    return gap(one) or "covered"
