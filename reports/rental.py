"""What was rented and when, in a line: Provider A, fra-2, 64 x 8 H100, the date and how long."""

from collections import Counter

from ..evidence import Run
from .numbers import lasting, number_of, utc
from .plain_text import printable

_BRANDS = ("NVIDIA ", "AMD Instinct ", "AMD ")


def rented(run: Run) -> str:
    """Provider, cluster and size."""
    parts = [run.header.provider, run.header.cluster, shape(run)]
    return " · ".join(printable(part, 100) for part in parts if part)


def shape(run: Run) -> str:
    """Nodes by accelerators: 64 x 8 H100 80GB HBM3."""
    promised = run.header.promised
    per_node = Counter(len(node.ranks) for node in promised)
    what = accelerator(run)
    if len(per_node) != 1:
        return f"{number_of(len(promised), 'node')}, {sum(len(node.ranks) for node in promised):,} {what}"
    each = next(iter(per_node))
    if run.header.device == "cpu":
        return (
            f"{number_of(len(promised), 'node')}, {number_of(each, 'CPU slot')} each"
            if len(promised) > 1
            else (f"1 node, {number_of(each, 'CPU slot')}")
        )
    return f"{len(promised)} \N{MULTIPLICATION SIGN} {each} {what}"


def accelerator(run: Run) -> str:
    """The name that most accelerators give themselves, short; "accelerators" where none does."""
    names = Counter(str(fact.value) for fact in run.facts if fact.key == "accelerator.name" and fact.value != "cpu")
    if not names:
        return "CPU slots" if run.header.device == "cpu" else "GPUs"
    name = names.most_common(1)[0][0]
    for brand in _BRANDS:
        name = name.removeprefix(brand)
    return printable(name, 60)


def when(run: Run) -> str:
    """When the run began and how long it took."""
    if run.started is None:
        return "time unknown"
    took = lasting(run.ended - run.started) if run.ended else None
    return f"{utc(run.started)}, {took}" if took else utc(run.started)
