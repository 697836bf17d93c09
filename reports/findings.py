"""Findings as rows that open: what was observed against what was expected, its peers, its samples, what to do."""

from collections.abc import Sequence

from markupsafe import Markup
from msgspec import Struct

from ..evidence import parse_subject
from ..scoring.verdict import Finding, Layer, Result, Verdict
from .finding_evidence import among_peers, details, excerpts, group_of, nodes_of, since_when
from .first_screen import CATEGORY_WORDS, RESULT_WORDS
from .gathering import CONFIDENCE, Gathered, cost_of, gathered, nodes_in
from .layout import Column as TableColumn
from .layout import Table, text
from .layout import number as number_cell
from .log_excerpt import Excerpt
from .measured import Measured, params_label
from .numbers import NOTHING, dollars, figure, number_of
from .plain_text import listed, natural, printable

MOST_ROWS = 50
MOST_CHARTS = 12  # each is some kilobytes and a tenth of a second
LAYERS: dict[Layer, str] = {
    "rule": "a rule of the policy",
    "contract": "the number in the contract",
    "reference": "the reference for this hardware",
    "peers": "comparison with its peers",
    "baseline": "the last accepted run",
}


class Row(Struct, frozen=True, kw_only=True):
    """One row of the findings table, with what it opens to."""

    subject: str
    subjects: str  # all of them, where several were gathered
    nodes: str  # for the filter
    check: str
    categories: str  # their keys, for the filter
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
    cost: str  # a month
    cost_sort: float
    since: str  # UTC
    since_sort: float | None
    detail: tuple[tuple[str, str], ...]
    chart: Markup | None
    logs: tuple[Excerpt, ...]
    action: str
    statement: str


def rows(measured: Measured, verdict: Verdict, *, charts: bool = True) -> tuple[list[Row], int]:
    """What did not pass, what decides first, at most 50 rows; and how many findings were left out.

    Without `charts` neither peers are drawn nor logs read.
    """
    every = gathered(verdict)
    left_out = sum(len(group.findings) for group in every[MOST_ROWS:])
    shown = every[:MOST_ROWS]
    return [
        _row(measured, each, verdict, draws=charts and place < MOST_CHARTS) for place, each in enumerate(shown)
    ], left_out


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
    return Table(caption="What passed", columns=columns, rows=table_rows, on_paper="whole")


def _row(measured: Measured, group: Gathered, verdict: Verdict, *, draws: bool) -> Row:
    first = group.findings[0]
    values = group_of(measured, first)
    names = sorted({each.subject for each in group.findings}, key=natural)
    costs = {cost.subject: cost.usd for each in group.findings if (cost := cost_of(each, verdict)) is not None}
    usd = sum(cost.value or 0.0 for cost in costs.values())
    derived = [("Costs", f"{dollars(usd)} a month: {'; '.join(dict.fromkeys(c.basis for c in costs.values()))}.")]
    since = since_when(measured, group.findings, values)
    return Row(
        subject=printable(first.subject if len(names) == 1 else _together(names), 200),
        subjects=", ".join(names[:600]),
        nodes=" ".join(nodes_in(group.findings)),
        check=_check(group),
        categories=" ".join(dict.fromkeys(each.category for each in group.findings)),
        category_word="" if group.why or first.check.startswith(first.category) else CATEGORY_WORDS[first.category],
        result=first.result,
        result_word=RESULT_WORDS[first.result],
        against=_against(group.findings) if not group.why else f"{_check(group)}.",
        observed=_range(group.findings) if len(group.findings) > 1 else _observed(first),
        observed_sort=first.observed if isinstance(first.observed, int | float) else None,
        expected=NOTHING if group.why else printable(first.expected or NOTHING, 200),
        layer=first.layer or NOTHING,
        confidence=first.confidence,
        confidence_rank=CONFIDENCE[first.confidence],
        required=any(each.required for each in group.findings),
        cost=dollars(usd) if usd else "",
        cost_sort=usd,
        since=f"{since:%d %b %H:%M}" if since else NOTHING,
        since_sort=since.timestamp() if since else None,
        detail=(*details(measured, group.findings, names, values), *(derived if usd else ())),
        chart=among_peers(group.findings, values) if draws and values else None,
        logs=excerpts(measured.run, first) if draws else (),
        action=_action(group),
        statement="" if group.why else printable(_statement(first, names)),
    )


def _check(group: Gathered) -> str:
    if not group.why:
        return printable(group.findings[0].check, 120)
    return printable(f"{number_of(len(group.findings), 'result')} {group.why}", 200)


def _action(group: Gathered) -> str:
    """What to do, the same for all of a row."""
    if group.why.startswith("on excluded"):
        return "Nothing has to be measured as long as these nodes stay out."
    if group.why.startswith("left out by --only"):
        return "Run again without --only."
    return (
        "Run a profile that includes it."
        if group.why
        else printable(group.findings[0].action.removeprefix("To pass: "))
    )


def _observed(each: Finding) -> str:
    if each.observed is None:
        return NOTHING
    if isinstance(each.observed, int) and not isinstance(each.observed, bool) and not each.unit:
        return f"{each.observed:,}"
    return printable(figure(each.observed, each.unit), 200)


def _statement(first: Finding, names: Sequence[str]) -> str:
    """The sentence to the provider: of several subjects that of the worst, and who else."""
    others = [name for name in names if name != first.subject]
    if not others or not first.statement:
        return first.statement
    return f"{first.statement} The same on {len(others):,} more: {listed(others, 40)}."


def _against(group: Sequence[Finding]) -> str:
    """Observed against expected, and who judged, in a sentence; of several, what the first is told."""
    each = group[0]
    expected = printable(each.expected, 200)
    if each.result == "not_measured" and each.observed is None:
        return f"Not measured; expected {expected}." if expected not in ("", "measured") else "Not measured."
    observed = f"{_range(group)} on {number_of(len(group), 'subject')}" if len(group) > 1 else _observed(each)
    told = f"Observed {observed}" if each.observed is not None else "Not measured"
    if expected:
        told += f", expected {expected}" if each.observed is not None else f"; expected {expected}"
    if each.layer:
        told += f". Judged by {LAYERS[each.layer]}"
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
