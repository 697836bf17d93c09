"""What changed since the run that this one is held against, as lines: regressions apart from noise."""

from collections.abc import Iterator

from ..scoring.verdict import Change, Compared, Verdict
from ..scoring.words import counted, figure, params_in_words, several

MOST_LINES = 10


def beside_baseline(verdict: Verdict) -> Iterator[str]:
    """How many figures are worse, better, or within noise, what else changed, and each that is worse; none without a
    baseline."""
    compared = verdict.compared
    if compared is None:
        return
    yield _counts(compared)
    if compared.baseline.changes:
        yield f"Changed since: {several(compared.baseline.changes, 6)}."
    worse = [change for change in compared.changes if change.told == "worse"]
    yield from (f"  {line_of(change)}" for change in worse[:MOST_LINES])
    if len(worse) > MOST_LINES:
        yield f"  and {len(worse) - MOST_LINES} more in verdict.json."


def _counts(compared: Compared) -> str:
    worse = sum(change.told == "worse" for change in compared.changes)
    better = compared.figures - compared.noise - worse
    when = f" of {compared.baseline.started:%Y-%m-%d}" if compared.baseline.started else ""
    parts = [f"{worse} worse", f"{better} better", f"{compared.noise} within noise"]
    parts += [f"{compared.not_comparable} not comparable"] if compared.not_comparable else []
    return f"Beside {compared.baseline.run_id}{when}: {counted(compared.figures, 'figure')}, {', '.join(parts)}."


def line_of(change: Change) -> str:
    """'n01/gpu3 matmul.tflops (bf16): 731 → 570 TFLOPS, 78 % of it (95 %: 74 to 82); suspect: torch 2.12 → 2.13'."""
    params = params_in_words(change.params)
    told = (
        f"{change.subject} {change.metric}{f' ({params})' if params else ''}: {figure(change.before, change.unit)} → "
    )
    told += f"{figure(change.now, change.unit)}, {change.share:.0%} of it (95 %: {change.low:.0%} to {change.high:.0%})"
    suspects = several(change.suspects, 4)
    return f"{told}; suspect: {suspects}" if suspects else f"{told}; nothing else is known to have changed"
