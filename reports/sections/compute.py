"""Compute: how fast matrix products run on each accelerator, and whether they are right."""

from ...scoring.verdict import Verdict
from ..layout import Section
from ..measured import Group, Measured
from ..numbers import figure
from ..plain_text import listed
from ..spread import noun
from ..tables import aggregates, gaps, worst
from .judged import described, failing, judged_chart, nonzero, not_measured


def compute(measured: Measured, verdict: Verdict) -> Section:
    """The section on matrix products."""
    main = measured.main("matmul.tflops")
    tables = [aggregates(measured, measured.metrics("matmul."))]
    if main:
        tables.append(worst(main, marked=failing(verdict, main.metric.name)))
    return Section(
        anchor="compute",
        title="Compute",
        answer=_answer(measured, main) if main else not_measured(measured, "matmul."),
        chart=judged_chart(measured, verdict, main) if main else None,
        tables=tuple(table for table in tables if table),
        gaps=gaps(measured.missing("matmul.")),
        method=(
            "Products of fixed shapes over normally distributed random numbers; rate is 2mnk over the time of one.",
            "Burst: the cache is flushed before each product. Sustained: back to back, all accelerators of a node "
            "at once, as in training. The value is the median of the samples.",
            "Each product is computed again on the same device and compared bit by bit.",
        ),
        source=(
            "mamf-finder, ml-engineering",
            "https://github.com/stas00/ml-engineering/tree/master/compute/accelerator",
        ),
        cannot_tell="A short test finds a slow or wrong device; rare silent errors take weeks of work to show.",
    )


def _answer(measured: Measured, main: Group) -> str:
    middle = figure(main.median, main.metric.unit)
    lowest = main.worst
    words = [f"The median {noun(main)} reaches {middle}{described(main)}"]
    if len(main.values) > 1:
        words.append(f"; the slowest, {lowest.subject}, {figure(lowest.value, main.metric.unit)}")
    return "".join(words) + ". " + _right(measured)


def _right(measured: Measured) -> str:
    looked = nonzero(measured, "matmul.mismatches")
    if looked is None:
        return "Whether repeated products are bitwise equal was not measured."
    count, wrong = looked
    if wrong:
        return f"Repeated products differ on {listed(wrong)}."
    return f"Repeated products were bitwise equal on all {count:,}." if count > 1 else "Repeated products were equal."
