"""Findings as rows that open: what was observed against what was expected, its peers, its samples, what to do."""

from collections.abc import Iterable, Sequence

from markupsafe import Markup
from msgspec import Struct

from ..evidence import parse_subject
from ..scoring.verdict import Category, Finding, Layer, Result, Verdict
from .finding_evidence import among_peers, details, group_of, nodes_of
from .first_screen import CATEGORY_WORDS, RESULT_WORDS
from .layout import Column as TableColumn
from .layout import Table, text
from .layout import number as number_cell
from .measured import Measured, params_label
from .numbers import NOTHING, figure, number_of
from .plain_text import natural, printable

MOST_ROWS = 50
MOST_CHARTS = 12  # each is some kilobytes and a tenth of a second
_GATHER_FROM = 2  # so many like findings become one row
_ORDER: dict[Result, int] = {"fail": 0, "not_measured": 1, "warn": 2, "pass": 3}
_LAYERS: dict[Layer, str] = {
    "rule": "a rule of the policy",
    "contract": "the number in the contract",
    "reference": "the reference for this hardware",
    "peers": "comparison with its peers",
    "baseline": "the last accepted run",
}
_CONFIDENCE = {"high": 3, "medium": 2, "low": 1}


class Row(Struct, frozen=True, kw_only=True):
    """One row of the findings table, with what it opens to."""

    subject: str
    subjects: str  # all of them, where several were gathered
    nodes: str  # for the filter
    check: str
    category: Category
    category_word: str
    result: Result
    result_word: str
    against: str
    observed: str
    observed_sort: float | None
    expected: str
    layer: str
    confidence: str
    confidence_rank: int
    required: bool
    detail: tuple[tuple[str, str], ...]
    chart: Markup | None
    action: str
    statement: str


def rows(measured: Measured, verdict: Verdict, *, charts: bool = True) -> tuple[list[Row], int]:
    """What did not pass, the gravest first, at most 50 rows; and how many findings were left out."""
    gathered = _gathered(_ordered(each for each in verdict.findings if each.result != "pass"))
    shown = gathered[:MOST_ROWS]
    left_out = sum(len(group) for group in gathered[MOST_ROWS:])
    return [_row(measured, group, draws=charts and place < MOST_CHARTS) for place, group in enumerate(shown)], left_out


def passed(verdict: Verdict) -> Table | None:
    """What passed, one row a check: how many subjects, what was observed, what was expected."""
    by_check: dict[tuple[str, str, str], list[Finding]] = {}
    for each in verdict.findings:
        if each.result == "pass":
            label = params_label(each.params) if each.params else ""
            by_check.setdefault((each.category, each.check, label), []).append(each)
    if not by_check:
        return None
    heads = ("category", "check", "params", "subjects", "observed", "expected")
    columns = tuple(TableColumn(title=head, numeric=head == "subjects") for head in heads)
    table_rows = tuple(
        (
            text(CATEGORY_WORDS.get(found[0].category, category)),
            text(check, code=True),
            text(label),
            number_cell(len(found), f"{len(found):,}"),
            text(_range(found)),
            text(_same([each.expected for each in found])),
        )
        for (category, check, label), found in by_check.items()
    )
    return Table(caption="What passed", columns=columns, rows=table_rows)


def _ordered(findings: Iterable[Finding]) -> list[Finding]:
    """Fail, then what is required and not measured, then warnings, then what could not be seen."""

    def grave(each: Finding) -> tuple[object, ...]:
        optional = each.result == "not_measured" and not each.required
        return (4 if optional else _ORDER[each.result]), not each.required, -_CONFIDENCE[each.confidence]

    return sorted(findings, key=lambda each: (*grave(each), each.category, each.check, natural(each.subject)))


def _gathered(findings: Sequence[Finding]) -> list[list[Finding]]:
    """Like findings without a value in one row: 512 times the same missing tool is one finding to a reader."""
    groups: dict[tuple[object, ...], list[Finding]] = {}
    for each in findings:
        like = (each.check, each.result, each.required, each.reason, each.expected, tuple(each.params.items()))
        groups.setdefault(like if each.result == "not_measured" else (id(each),), []).append(each)
    found: list[list[Finding]] = []
    for group in groups.values():
        found += [group] if len(group) >= _GATHER_FROM else [[each] for each in group]
    return found


def _row(measured: Measured, group: Sequence[Finding], *, draws: bool) -> Row:
    first = group[0]
    values = group_of(measured, first)
    names = sorted({each.subject for each in group}, key=natural)
    return Row(
        subject=first.subject if len(group) == 1 else _together(names),
        subjects=", ".join(names[:600]),
        nodes=" ".join(sorted({node for name in names for node in nodes_of(name)}, key=natural)),
        check=printable(first.check, 120),
        category=first.category,
        category_word="" if first.check.startswith(first.category) else CATEGORY_WORDS[first.category],
        result=first.result,
        result_word=RESULT_WORDS[first.result],
        against=_against(first),
        observed=_observed(first),
        observed_sort=first.observed if isinstance(first.observed, int | float) else None,
        expected=printable(first.expected or "\N{EM DASH}", 200),
        layer=first.layer or "\N{EM DASH}",
        confidence=first.confidence,
        confidence_rank=_CONFIDENCE[first.confidence],
        required=first.required,
        detail=tuple(details(measured, first, names, values)),
        chart=among_peers(first, values) if draws and values else None,
        action=printable(first.action),
        statement=printable(first.statement),
    )


def _observed(each: Finding) -> str:
    if each.observed is None:
        return NOTHING
    if isinstance(each.observed, int) and not isinstance(each.observed, bool) and not each.unit:
        return f"{each.observed:,}"
    return printable(figure(each.observed, each.unit), 200)


def _against(each: Finding) -> str:
    """Observed against expected, and who judged, in a sentence."""
    expected = printable(each.expected, 200)
    told = f"Observed {_observed(each)}" if each.observed is not None else "Not measured"
    if expected:
        told += f", expected {expected}" if each.observed is not None else f"; expected {expected}"
    if each.layer:
        told += f". Judged by {_LAYERS[each.layer]}"
    return f"{told}; confidence {each.confidence}."


def _range(found: Sequence[Finding]) -> str:
    numbers = [e.observed for e in found if isinstance(e.observed, int | float) and not isinstance(e.observed, bool)]
    if len(numbers) != len(found):
        return _same([_observed(each) for each in found])
    low, high = figure(min(numbers), found[0].unit), figure(max(numbers), found[0].unit)
    return low if low == high else f"{low} to {high}"


def _same(words: Sequence[str]) -> str:
    unique = list(dict.fromkeys(words))
    return printable(unique[0] if len(unique) == 1 else f"{unique[0]} and {len(unique) - 1} others", 200)


_KINDS = {"gpu": "GPU", "numa": "NUMA node", "nic": "NIC"}


def _together(names: Sequence[str]) -> str:
    """Several subjects in short: 64 nodes, n02: 8 GPUs."""
    kinds = {_KINDS.get(_kind(name), _kind(name)) for name in names}
    nodes = {node for name in names for node in nodes_of(name)}
    counted = number_of(len(names), kinds.pop() if len(kinds) == 1 else "subject")
    return f"{nodes.pop()}: {counted}" if len(nodes) == 1 and len(names) > 1 else counted


def _kind(subject: str) -> str:
    try:
        return parse_subject(subject).kind
    except ValueError:
        return "subject"
