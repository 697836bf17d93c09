"""The parts of JUnit XML: suites of cases, and what a case says."""

from collections.abc import Sequence
from xml.etree import ElementTree as ET

from .plain_text import printable, printable_lines


def document(root: ET.Element) -> str:
    """The whole text, with the counts of all suites."""
    for count in ("tests", "failures", "errors", "skipped"):
        root.set(count, str(sum(int(suite.get(count, "0")) for suite in root)))
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def suite(name: str, cases: Sequence[ET.Element]) -> ET.Element:
    """A suite with its counts."""

    def count(part: str) -> str:
        return str(sum(case.find(part) is not None for case in cases))

    counted = {"failures": count("failure"), "errors": count("error"), "skipped": count("skipped")}
    made = ET.Element("testsuite", {"name": name, "tests": str(len(cases)), **counted})
    made.extend(cases)
    return made


def part(case: ET.Element, name: str, words: str, *, message: str = "") -> None:
    """Let a case say something: failure, error, skipped or system-out."""
    said = ET.SubElement(case, name, {"message": printable(message, 500)} if message else {})
    said.text = printable_lines(words)  # each of its lines was made one before they were joined
