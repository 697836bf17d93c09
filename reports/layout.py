"""What the page is made of, before it is HTML: cells, tables, charts, sections. All text is plain; the template
escapes it."""

from markupsafe import Markup
from msgspec import Struct


class Cell(Struct, frozen=True, kw_only=True):
    """One table cell. `sort` orders it where its text would not; `tone` is fail, warn, not_measured, pass or none."""

    text: str
    sort: float | str | None = None
    tone: str = ""
    code: bool = False


class Column(Struct, frozen=True, kw_only=True):
    """A table column. Numbers stand right-aligned."""

    title: str
    numeric: bool = False


class Table(Struct, frozen=True, kw_only=True):
    """A table with its caption. `note` says what was left out; `folded` hides it until it is opened."""

    caption: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""
    folded: bool = False


class Chart(Struct, frozen=True, kw_only=True):
    """A static chart: `title` is its message, `note` what the marks mean, `key` colours (a class of the style sheet)
    with their words. Its text alternative is part of the SVG."""

    title: str
    svg: Markup
    note: str = ""
    key: tuple[tuple[str, str], ...] = ()


class Matrix(Struct, frozen=True, kw_only=True):
    """Pairs of nodes as squares, drawn by the page's script. `values` is base64 of 16 bits a pair, row by row: 0 is
    "not measured", 65535 is `top` in `unit`; `low` and `high` are the least and the greatest in words."""

    title: str
    names: tuple[str, ...]
    values: str
    top: float
    unit: str
    low: str
    high: str
    note: str = ""


class Gap(Struct, frozen=True, kw_only=True):
    """What a section lacks: which metric, on how many subjects, why, and how to measure it."""

    metric: str
    subjects: str
    why: str
    remedy: str


class Section(Struct, frozen=True, kw_only=True):
    """One section of the page: the answer first, then what shows it, how it was measured and what it cannot tell."""

    anchor: str
    title: str
    answer: str
    chart: Chart | None = None
    matrix: Matrix | None = None
    tables: tuple[Table, ...] = ()
    gaps: tuple[Gap, ...] = ()
    method: tuple[str, ...] = ()
    source: tuple[str, str] | None = None  # the method's reference: its name and address
    cannot_tell: str = ""


def text(value: str, *, tone: str = "", code: bool = False) -> Cell:
    """A cell of words."""
    return Cell(text=value, tone=tone, code=code)


def number(value: float | None, shown: str, *, tone: str = "") -> Cell:
    """A cell of a number, sorted by its value."""
    return Cell(text=shown, sort=value, tone=tone)
