"""The page: one self-contained HTML document made from a run and its verdict."""

import base64
import hashlib
from collections.abc import Iterable
from importlib import resources

from jinja2 import DictLoader, Environment, StrictUndefined
from markupsafe import Markup, escape
from rjsmin import jsmin

from ..evidence import Run
from ..scoring.joined import standing
from ..scoring.provider_record import ProviderRecord
from ..scoring.verdict import Verdict
from .appendix import appendix
from .findings import passed, rows
from .first_screen import CATEGORY_WORDS, RESULT_WORDS, WORDS, categories, figures, tally
from .measured import Measured
from .node_list import node_list
from .plain_text import printable, printable_lines
from .rental import rented, when
from .sections import SECTIONS
from .sections.delivery import delivery
from .visibility import exclusion, required_words, visibility

_TEMPLATES = (
    "page.html.j2",
    "parts.html.j2",
    "first_screen.html.j2",
    "findings.html.j2",
    "sections.html.j2",
    "appendix.html.j2",
)
LONGEST_TEXT = 100_000


def render(run: Run, verdict: Verdict, record: ProviderRecord | None = None) -> str:
    """The whole page, with what `record` says of the provider. It makes no request, runs no script but its own, and
    escapes whatever the run holds."""
    measured = Measured(standing(run))
    found, left_out = rows(measured, verdict)
    style, script = asset("page.css"), jsmin(asset("page.js"))
    return (
        environment(_TEMPLATES)
        .get_template("page.html.j2")
        .render(
            run=run,
            verdict=verdict,
            word=WORDS[verdict.verdict],
            shape=_SHAPES[verdict.verdict],
            rented=rented(run),
            when=when(run),
            figures=figures(run, measured, verdict),
            categories=categories(verdict),
            exclusion=exclusion(verdict),
            findings=found,
            finding_categories={key for row in found for key in row.categories.split()},
            costs_known=any(row.cost for row in found),
            findings_left_out=left_out,
            passed=passed(verdict),
            category_words=CATEGORY_WORDS,
            result_words=RESULT_WORDS,
            unsigned=verdict.verdict in ("GO", "CONDITIONAL") and not verdict.signable,
            tally=tally(verdict.findings, verdict),
            coverage=required_words(verdict),
            visibility=visibility(measured, verdict),
            sections=[*(section(measured, verdict) for section in SECTIONS), delivery(measured, record)],
            appendix=appendix(run),
            nodes=node_list(measured),
            style=Markup(style),  # noqa: S704  # our own file
            script=Markup(script),  # noqa: S704  # our own file
            policy=content_policy(style, script),
        )
    )


def content_policy(style: str, script: str = "") -> str:
    """The Content-Security-Policy of the page: nothing from anywhere, our one style and one script by their hash."""
    ours = f"script-src '{_hash(script)}'; " if script else ""
    return f"default-src 'none'; style-src '{_hash(style)}'; {ours}img-src data:; base-uri 'none'; form-action 'none'"


def _hash(content: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()


def asset(name: str) -> str:
    """The text of a file in templates/."""
    return resources.files(__package__).joinpath("templates", name).read_text(encoding="utf-8")


def environment(names: Iterable[str]) -> Environment:
    """Templates that escape whatever they are given; `names` are their files."""
    sources = {name: asset(name) for name in names}
    made = Environment(
        loader=DictLoader(sources),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["marked"] = marked
    made.filters["lines"] = lines
    return made


def shown(value: object) -> object:
    """What the template writes for a value: text as one line without control characters, unless it was given several
    by the filter `lines`; markup that was made safe as it is."""
    if not isinstance(value, str) or isinstance(value, Markup | Lines):
        return value
    return printable(value, LONGEST_TEXT)


class Lines(str):
    """Text that may have several lines: a document, a log excerpt."""

    __slots__ = ()


def lines(text: str) -> Lines:
    """Text whose lines are kept."""
    return Lines(printable_lines(text, LONGEST_TEXT))


def marked(text: str) -> Markup:
    """Escaped text in which what stands between backquotes is code."""
    words = printable(text, LONGEST_TEXT)
    parts = words.split("`")
    if len(parts) % 2 == 0:
        return escape(words)
    code = Markup("<code>{}</code>")
    return Markup("").join(code.format(part) if place % 2 else escape(part) for place, part in enumerate(parts))


# Each verdict has its own shape beside its word and colour: a frame and a sign in a box of 24.
_SHAPES = {
    "GO": ("M12 1a11 11 0 1 0 0 22 11 11 0 0 0 0-22z", "M6.5 12.5l4 4 7.5-8.5"),
    "CONDITIONAL": ("M12 1.5 23.5 22H.5z", "M12 9v6M12 18v1"),
    "INCONCLUSIVE": ("M2 2h20v20H2z", "M8.5 9a3.5 3.5 0 1 1 5 3.2c-1 .5-1.5 1.1-1.5 2.3M12 17.5v1"),
    "NO_GO": ("M7.5 1h9L23 7.5v9L16.5 23h-9L1 16.5v-9z", "M8 8l8 8M16 8l-8 8"),
}
