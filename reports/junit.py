"""The verdict as JUnit XML, for CI systems: a test case a finding, a suite a category."""

from typing import get_args
from xml.etree import ElementTree as ET

from ..scoring.verdict import Category, Finding, Verdict
from .first_screen import RESULT_WORDS, WORDS
from .junit_cases import document, part, suite
from .measured import params_label
from .numbers import figure
from .plain_text import printable


def render(verdict: Verdict) -> str:
    """JUnit XML. A fail is a failure; not measured is an error where the policy requires it, else skipped; a warning
    passes and says why. The verdict itself is a case of its own, so that no run without findings looks green."""
    root = ET.Element("testsuites", {"name": "hwlottery"})
    root.append(_verdict_suite(verdict))
    for category in get_args(Category):
        found = [each for each in verdict.findings if each.category == category]
        if found:
            root.append(suite(category, [_case(each) for each in found]))
    return document(root)


def _verdict_suite(verdict: Verdict) -> ET.Element:
    case = ET.Element("testcase", {"classname": "hwlottery", "name": f"verdict ({printable(verdict.policy.name, 80)})"})
    told = "\n".join(map(printable, [verdict.sentence, *verdict.reasons, *verdict.caveats]))
    if verdict.verdict in ("GO", "CONDITIONAL"):
        signed = "" if verdict.signable else " (not signable)"
        part(case, "system-out", f"{WORDS[verdict.verdict]}{signed}: {told}")
    else:
        kind = "failure" if verdict.verdict == "NO_GO" else "error"
        part(case, kind, told, message=f"{WORDS[verdict.verdict]}: {verdict.sentence}")
    return suite("verdict", [case])


def _case(each: Finding) -> ET.Element:
    params = f" {params_label(each.params)}" if each.params else ""
    name = printable(f"{each.subject}{params}", 300)
    case = ET.Element("testcase", {"classname": printable(f"{each.category}.{each.check}", 200), "name": name})
    if each.result == "fail":
        part(case, "failure", _told(each), message=_against(each))
    elif each.result == "not_measured":
        part(case, "error" if each.required else "skipped", _told(each), message=_against(each))
    elif each.result == "warn":
        part(case, "system-out", f"warning: {printable(_against(each))}\n{_told(each)}")
    return case


def _against(each: Finding) -> str:
    if each.result == "not_measured":
        return f"{RESULT_WORDS['not_measured']}: {each.reason or each.detail or 'no value'}"
    return f"{figure(each.observed, each.unit)}, expected {each.expected}"


def _told(each: Finding) -> str:
    parts = (each.detail, each.action, each.statement, f"trials: {', '.join(each.evidence)}" if each.evidence else "")
    return "\n".join(printable(part) for part in parts if part)
