"""A history as JUnit XML, for CI systems: a case a node, a case a machine that keeps failing."""

from collections.abc import Iterator
from xml.etree import ElementTree as ET

from ..scoring.history import ClusterHistory, Covered, History
from ..scoring.lemons import Lemon
from .history_words import answer, gap, lemon
from .junit_cases import document, part, suite
from .plain_text import printable


def render(history: History) -> str:
    """JUnit XML. A machine that keeps failing and is still here is a failure, a node that is not covered an error. The
    answer is a case of its own, so that a folder without runs does not look green."""
    root = ET.Element("testsuites", {"name": "hwlottery history"})
    root.append(suite("answer", [_answer(history)]))
    for cluster in history.clusters:
        root.append(suite(printable(cluster.cluster, 200), [*_nodes(cluster), *_lemons(cluster)]))
    return document(root)


def _answer(history: History) -> ET.Element:
    case = ET.Element("testcase", {"classname": "hwlottery", "name": f"history within {history.days:g} days"})
    words = printable(answer(history), 1000)
    kind = {0: "system-out", 3: "failure"}.get(history.exit_code, "error")
    part(case, kind, words, message="" if kind == "system-out" else words)
    return case


def _nodes(cluster: ClusterHistory) -> Iterator[ET.Element]:
    for one in cluster.coverage:
        case = ET.Element("testcase", {"classname": "coverage", "name": printable(one.node, 200)})
        if one.missing:
            part(case, "error", _told(one), message=f"not covered: {gap(one)}")
        yield case


def _told(one: Covered) -> str:
    return f"{printable(one.machine, 200)}: {gap(one)}. Measure it: hwlottery recheck."


def _lemons(cluster: ClusterHistory) -> Iterator[ET.Element]:
    for one in cluster.lemons:
        case = ET.Element("testcase", {"classname": "machines", "name": printable(_named(one), 200)})
        part(case, "system-out" if one.here is None else "failure", lemon(one), message=lemon(one) if one.here else "")
        yield case


def _named(one: Lemon) -> str:
    return f"{one.here or one.names[-1]} ({one.machine})"
