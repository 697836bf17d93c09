"""A heat map as SVG: a row a subject, time across; one path a colour, so that thousands of cells stay small."""

from collections import defaultdict
from collections.abc import Sequence
from itertools import groupby
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
from markupsafe import Markup

from .colours import COLOURS
from .plain_text import printable

_LEFT, _RIGHT, _TOP, _ROW, _WIDE = 110, 90, 6, 14, 760
_LEVELS = COLOURS[::4]


def heat_map(
    rows: Sequence[str],
    values: Any,
    *,
    told: Sequence[str],
    marked: frozenset[str],
    scale: tuple[float, float],
    ends: tuple[str, str],
    across: tuple[str, str],
    label: str,
) -> Markup:
    """`values`: rows x columns, NaN for nothing read. `told` stands at the end of each row, `scale` is what
    the colours range over, `ends` its ends in words, `across` stands at the ends of the axis."""
    bottom = _TOP + _ROW * len(rows)
    size = (_LEFT + _WIDE + _RIGHT, bottom + 44)
    svg = ET.Element("svg", {"viewBox": f"0 0 {size[0]} {size[1]}", "width": str(size[0]), "height": str(size[1])})
    svg.attrib |= {"role": "img", "aria-label": printable(label, 600)}
    ground = {"x": str(_LEFT), "y": str(_TOP), "width": str(_WIDE), "height": str(bottom - _TOP), "class": "fill-rule"}
    ET.SubElement(svg, "rect", ground)
    for level, path in _paths(values, *scale).items():
        ET.SubElement(svg, "path", {"d": path, "stroke": _LEVELS[level], "stroke-width": str(_ROW - 1), "fill": "none"})
    for place, (name, end) in enumerate(zip(rows, told, strict=True)):
        tone, weight = ("bad", "bold") if name in marked else ("muted", "normal")
        y = _TOP + _ROW * (place + 0.5) + 4
        _text(svg, _LEFT - 6, y, name, anchor="end", tone=tone, weight=weight)
        _text(svg, _LEFT + _WIDE + 6, y, end, tone=tone, weight=weight)
    _text(svg, _LEFT, bottom + 16, across[0])
    _text(svg, _LEFT + _WIDE, bottom + 16, across[1], anchor="end")
    _scale(svg, bottom + 26, ends)
    return Markup(ET.tostring(svg, encoding="unicode"))  # noqa: S704  # every text went through ElementTree


def _paths(values: Any, low: float, high: float) -> dict[int, str]:
    """By level of colour, the runs of equal cells as strokes along the middle of their row."""
    shares = np.clip((values - low) / ((high - low) or 1.0), 0, 1)
    levels = np.where(np.isnan(values), -1, shares * (len(_LEVELS) - 1) + 0.5)
    step, found = _WIDE / values.shape[1], defaultdict(list)
    for place, row in enumerate(levels.astype(int).tolist()):
        start = 0
        for level, cells in groupby(row):
            length = len(list(cells))
            if level >= 0:
                y = _TOP + _ROW * (place + 0.5)
                found[level].append(f"M{_LEFT + start * step:.0f} {y:g}H{_LEFT + (start + length) * step:.0f}")
            start += length
    return {level: "".join(parts) for level, parts in sorted(found.items())}


def _scale(svg: Any, y: int, ends: tuple[str, str]) -> None:
    _text(svg, _LEFT + 94, y + 11, ends[0], anchor="end")
    for place, colour in enumerate(_LEVELS):
        swatch = {"x": str(_LEFT + 100 + place * 16), "y": str(y + 2), "width": "16", "height": "10", "fill": colour}
        ET.SubElement(svg, "rect", swatch)
    _text(svg, _LEFT + 106 + len(_LEVELS) * 16, y + 11, ends[1])


def _text(
    svg: Any, x: float, y: float, words: str, *, anchor: str = "start", tone: str = "muted", weight: str = "normal"
) -> None:
    place = {"x": f"{x:g}", "y": f"{y:g}", "text-anchor": anchor, "font-size": "11", "font-weight": weight}
    ET.SubElement(svg, "text", {**place, "class": f"fill-{tone}"}).text = printable(words, 80)
