"""Altair charts as static SVG that a strict page may hold.

vl-convert's markup is made from data that may be hostile. It is parsed, only what a chart needs is copied over, and
everything is written anew: no script, link, image, style or foreign element can pass. Colours become classes, so
that one SVG is readable on a light and on a dark page and in print.
"""

import re
from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree as ET

import altair as alt
import msgspec
from markupsafe import Markup

from .plain_text import printable

# Stand-ins that the page's style sheet replaces: Okabe-Ito, and greys for all that is fine.
INK = "#111111"
MUTED = "#666666"
RULE = "#dddddd"
FINE = "#999999"
BAND = "#cccccc"
BAD = "#d55e00"
WARN = "#e69f00"
BLUE = "#0072b2"
SKY = "#56b4e9"
GREEN = "#009e73"
PINK = "#cc79a7"
_CLASS_OF = {
    INK: "ink",
    MUTED: "muted",
    RULE: "rule",
    FINE: "fine",
    BAND: "band",
    BAD: "bad",
    WARN: "warn",
    BLUE: "blue",
    SKY: "sky",
    GREEN: "green",
    PINK: "pink",
}
_NARROW = 700.0  # pixels: readable on a phone at a smaller size than wide charts
_SVG = "{http://www.w3.org/2000/svg}"
_ELEMENTS = frozenset({"svg", "g", "path", "line", "rect", "text", "tspan", "circle"})
_ATTRIBUTES = frozenset(
    {"d", "x", "y", "x1", "x2", "y1", "y2", "cx", "cy", "r", "width", "height", "transform"}
    | {"opacity", "fill-opacity", "stroke-opacity", "stroke-width", "stroke-dasharray", "stroke-linecap"}
    | {"stroke-linejoin", "text-anchor", "font-size", "font-weight", "font-style"}
)
_LONG_NUMBER = re.compile(r"-?\d+\.\d{2,}(?:e-?\d+)?")
_FONT = "Helvetica, Arial, sans-serif"  # for measuring text; the page sets its own

ET.register_namespace("", _SVG[1:-1])


def draw(chart: Any, *, label: str) -> Markup:
    """The chart as safe SVG markup with `label` as its text alternative.

    Raises ValueError where vl-convert cannot draw it.
    """
    import vl_convert

    configured = _themed(chart)
    # Altair's own check of the whole chart against its schema takes longer than the drawing, and its parts were checked
    # when they were made; what cannot be drawn is an error of vl-convert's.
    markup = vl_convert.vegalite_to_svg(configured.to_json(validate=False), allowed_base_urls=[])
    return Markup(clean(markup, label=label))  # noqa: S704  # every part was rewritten by clean()


def clean(markup: str, *, label: str) -> str:
    """Rewrite SVG markup: known elements and attributes only, colours as classes, no ids, coordinates shortened.

    Raises ValueError for markup that is not well-formed.
    """
    try:
        source = ET.fromstring(markup)  # noqa: S314  # made by vl-convert: no DTD, no entities
    except ET.ParseError as error:
        raise ValueError(f"the chart's SVG cannot be read: {error}") from error
    width, height = (float(source.get(side, "0")) for side in ("width", "height"))
    target = ET.Element(f"{_SVG}svg", {"viewBox": f"0 0 {width:g} {height:g}", "width": f"{width:g}"})
    if width < _NARROW:
        target.set("class", "narrow")
    target.attrib |= {"height": f"{height:g}", "role": "img", "aria-label": printable(label, 600)}
    target.extend(_copies(source))
    return ET.tostring(target, encoding="unicode")


def _copies(source: ET.Element) -> Iterator[ET.Element]:
    for element in source:
        name = element.tag.removeprefix(_SVG)
        if name not in _ELEMENTS or _draws_nothing(element):
            continue
        copy = ET.Element(f"{_SVG}{name}", _attributes(element))
        copy.text = element.text
        copy.extend(_copies(element))
        if name == "g" and len(copy) == 0:
            continue
        if name == "g" and not copy.attrib:
            yield from copy
        else:
            yield copy


def _draws_nothing(element: ET.Element) -> bool:
    """Vega's empty frames, its white background and invisible marks."""
    ground = element.get("fill") in ("white", "transparent") and element.tag == f"{_SVG}rect"
    return ground or element.get("display") == "none" or element.get("d") in ("", "M0,0h0v0h0Z")


def _attributes(element: ET.Element) -> dict[str, str]:
    """The attributes to keep. A mark's aria-label becomes data-tip: the page's script shows it under the pointer."""
    kept = {name: _LONG_NUMBER.sub(_shorter, value) for name, value in element.items() if name in _ATTRIBUTES}
    kept = {name: value for name, value in kept.items() if (name, value) not in _DEFAULTS}
    classes = [f"{side}-{_colour_class(element.get(side))}" for side in ("fill", "stroke") if element.get(side)]
    if classes:
        kept["class"] = " ".join(classes)
    label = element.get("aria-label")
    if label and element.get("role") == "graphics-symbol" and element.get("aria-roledescription") not in _SILENT:
        kept["data-tip"] = label
    return kept


# What has no description of its own: Vega would read out its raw data.
_SILENT = frozenset({"axis", "text mark", "rule mark"})
_DEFAULTS = frozenset({("opacity", "1"), ("transform", "translate(0,0)")})


def _colour_class(colour: str | None) -> str:
    if colour in (None, "none", "transparent"):
        return "none"
    return _CLASS_OF.get(str(colour).lower(), "ink")


def _shorter(found: re.Match[str]) -> str:
    """One decimal: a tenth of a pixel."""
    short = f"{float(found.group()):.1f}".removesuffix(".0")
    return "0" if short == "-0" else short


def _themed(chart: Any) -> Any:
    axis = {
        "labelColor": MUTED,
        "titleColor": MUTED,
        "titleFontWeight": "normal",
        "gridColor": RULE,
        "domainColor": FINE,
        "tickColor": FINE,
        "labelFontSize": 12,
        "titleFontSize": 12,
        "labelLimit": 180,
        "titlePadding": 8,
    }
    return (
        chart.configure(font=_FONT, background="transparent", padding={"left": 4, "top": 6, "right": 28, "bottom": 4})
        .configure_view(stroke=None)
        .configure_axis(**axis)
        .configure_text(fontSize=12, color=INK)
        .configure_legend(disable=True)
    )


def inline(rows: list[dict[str, Any]]) -> Any:
    """Rows as inline chart data, their text made printable.

    As JSON in a string: Altair copies a chart many times, and thousands of rows of objects with it.
    """
    shown = [{key: printable(v, 200) if isinstance(v, str) else v for key, v in row.items()} for row in rows]
    values = msgspec.json.encode(shown).decode()
    return alt.InlineData(values=values, format=alt.JsonDataFormat(type="json"))
