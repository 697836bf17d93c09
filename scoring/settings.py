"""What may make a node faster or slower beside its hardware: software, methods and settings, as a run found them."""

from collections.abc import Iterator

from ..evidence import Run
from .baselines import SETTINGS, software_of
from .facts import Facts
from .words import figure

Settings = tuple[tuple[str, str], ...]
_LONGEST = 80


def settings_of(run: Run) -> dict[str, Settings]:
    """By node: names and values, sorted; of what a node has several of, all values that occur. Nodes that are alike
    share one tuple: of hundreds of runs all of these are kept."""
    facts, software, shared = Facts(run), software_of(run.header), dict[Settings, Settings]()
    methods = run.header.segments[-1].methods if run.header.segments else {}
    common = [(f"method of {probe}", method) for probe, method in methods.items()]
    found: dict[str, Settings] = {}
    for node in run.header.promised:
        own = dict([*common, *software.get(node.node, {}).items(), *_facts_on(facts, node.node)])
        told = tuple(sorted((name, value[:_LONGEST]) for name, value in own.items()))
        found[node.node] = shared.setdefault(told, told)
    return found


def _facts_on(facts: Facts, node: str) -> Iterator[tuple[str, str]]:
    """The facts that count, of the node itself and of its parts."""
    for key, value in facts.on(node).items():
        if key in SETTINGS or key.startswith("software."):
            yield key.removeprefix("software."), figure(value)
    for key in SETTINGS:
        values = {figure(value) for value in facts.of_parts(node, key).values()}
        if values:
            yield key, ", ".join(sorted(values))
