"""What the page is made of, before it is HTML: cells, tables, charts, sections. All text is plain; the template
escapes it."""

from typing import Literal

import msgspec
from markupsafe import Markup
from msgspec import Struct

FIRST_ON_PAPER = 8  # rows; page.css says the same


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
    """A table with its caption. `note` says what was left out; `folded` hides it until it is opened.

    `on_paper`: printed whole, as its first rows where it is long, or not at all; the page keeps the rest.
    """

    caption: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""
    folded: bool = False
    on_paper: Literal["whole", "first", "none"] = "first"

    @property
    def long(self) -> bool:
        """Whether only its first rows are printed. One or two more than those are no reason to leave them out."""
        return self.on_paper == "first" and len(self.rows) > FIRST_ON_PAPER + 2


class Chart(Struct, frozen=True, kw_only=True):
    """A static chart: `title` is its message, `note` what the marks mean, `key` colours (a class of the style sheet)
    with their words. Its text alternative is part of the SVG."""

    title: str
    svg: Markup
    note: str = ""
    key: tuple[tuple[str, str], ...] = ()


class Mark(Struct, frozen=True, kw_only=True):
    """A square of a matrix with something to say: by its row and column, the smaller first. `kind`: slow (it stands
    out), gap (planned, and no value came). `retests`: how often it was measured again, alone."""

    row: int
    column: int
    kind: str = ""
    retests: int = 0


class Matrix(Struct, frozen=True, kw_only=True):
    """Pairs of nodes as squares, drawn by the page's script.

    `groups`: names of runs of `names` that belong together, each with its length. `values` is base64 of 16 bits a pair,
    the upper triangle row by row: 0 is "not measured", 65535 is `top`, a share of `usual`, which is in `unit`; of pairs
    measured again alone, of `alone`. `colours` run from 0 to `top`; `key` says what the marks are.
    """

    title: str
    names: tuple[str, ...]
    groups: tuple[tuple[str, int], ...] = ()
    values: str
    top: float
    usual: float
    alone: float
    unit: str
    colours: tuple[str, ...]
    ticks: tuple["Tick", ...]
    key: tuple[tuple[str, str], ...] = ()
    marks: tuple[Mark, ...] = ()
    note: str = ""

    @property
    def drawn(self) -> dict[str, object]:
        """What the page's script needs."""
        names = ("names", "groups", "top", "usual", "alone", "unit", "values")
        told = {name: msgspec.to_builtins(getattr(self, name)) for name in names}
        return {**told, "marks": [[mark.row, mark.column, mark.kind, mark.retests] for mark in self.marks]}

    @property
    def scale_words(self) -> str:
        """The scale in words."""
        return ", ".join(tick.words for tick in self.ticks)


class Tick(Struct, frozen=True, kw_only=True):
    """A labelled place on a scale of colours: `at` in its units, `anchor` as in SVG."""

    at: float
    words: str
    anchor: str = "start"


class Gap(Struct, frozen=True, kw_only=True):
    """What a section lacks: which metric, on how many subjects, why, and how to measure it."""

    metric: str
    subjects: str
    why: str
    remedy: str


class Part(Struct, frozen=True, kw_only=True):
    """A part of a section with a heading of its own: its answer, what shows it, and the figures."""

    title: str
    answer: str
    matrix: Matrix | None = None
    chart: Chart | None = None
    tables: tuple[Table, ...] = ()


class Field(Struct, frozen=True, kw_only=True):
    """An input of the calculator: what it is, its value, and between what it may lie. An empty one is not known."""

    name: str
    label: str
    value: str
    least: str = "0"
    most: str = "1e12"
    required: bool = True


class Calculator(Struct, frozen=True, kw_only=True):
    """Inputs that the reader may change, and what the page's script needs beside them. `waits` are the ways to
    make up for a failed node: their words, the hours that a job waits, the spares that are paid for; `way` is the one
    assumed."""

    fields: tuple[Field, ...]
    outputs: tuple[tuple[str, str], ...]  # name and label
    waits: tuple[tuple[str, str, str], ...]
    way: str
    constants: dict[str, float | None]


class Section(Struct, frozen=True, kw_only=True):
    """One section of the page: the answer first, then what shows it, how it was measured and what it cannot tell."""

    anchor: str
    title: str
    answer: str
    chart: Chart | None = None
    parts: tuple[Part, ...] = ()
    tables: tuple[Table, ...] = ()
    gaps: tuple[Gap, ...] = ()
    method: tuple[str, ...] = ()
    source: tuple[str, str] | None = None  # the method's reference: its name and address
    cannot_tell: str = ""
    calculator: Calculator | None = None


def text(value: str, *, tone: str = "", code: bool = False) -> Cell:
    """A cell of words."""
    return Cell(text=value, tone=tone, code=code)


def number(value: float | None, shown: str, *, tone: str = "") -> Cell:
    """A cell of a number, sorted by its value."""
    return Cell(text=shown, sort=value, tone=tone)
