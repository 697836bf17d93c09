"""A run is untrusted: whatever its names, facts and words hold, the page stays text."""

import re
from html.parser import HTMLParser
from pathlib import Path

import msgspec
import pytest
from generated_runs import START, make_run, write_records

from hwlottery.evidence import Event, Fact, Problem, Run, measured, read_run
from hwlottery.reports import svg
from hwlottery.reports.page import render
from hwlottery.scoring import load_policy, score_run
from hwlottery.scoring.verdict import Economics, Finding, Interval, Verdict

HOSTILE = "</script></style><img src=x onerror=alert(1)><svg onload=alert(2)>\"'`{{7*7}}\x07"


class Outline(HTMLParser):
    """The elements of a document, its headings, ids and visible text."""

    VOID = frozenset({"meta", "link", "input", "br", "img"})

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.open: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        while self.open and self.open.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        if not {"script", "style"} & set(self.open):
            self.texts.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.texts).split())

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


def hostile_run(place: Path) -> tuple[Run, Verdict]:
    """A run and a verdict that carry markup wherever free text can stand."""
    header, records = make_run(nodes=1, accelerators=3, policy_text=f"name: x\n# {HOSTILE}\n", seed=7)
    header = msgspec.structs.replace(header, provider=HOSTILE, cluster=HOSTILE)
    records += [
        Fact(subject="n00", key=HOSTILE[:100], value=HOSTILE),
        Fact(subject="n00/gpu0", key="accelerator.name", value=HOSTILE),
    ]
    records.append(Event(time=START, kind="note", severity="error", subject=HOSTILE, detail=HOSTILE))
    for index in range(3):
        params = {"dtype": HOSTILE, "phase": "sustained", HOSTILE: HOSTILE}
        records.append(
            measured(metric="matmul.tflops", subject=f"n00/gpu{index}", samples=[1.0 + index], params=params)
        )
        records.append(measured(metric="memory.copy", subject=f"{HOSTILE}{index}", samples=[1.0, 2.0]))
        records.append(measured(metric="all_reduce.busbw", subject=HOSTILE, samples=[1.0], params={"bytes": 2**index}))
    run = read_run(write_records(place, header, records))
    run.problems.append(Problem(kind="foreign", place=HOSTILE, detail=HOSTILE))
    words = dict.fromkeys(("check", "subject", "expected", "unit", "reason", "detail", "action", "statement"), HOSTILE)
    params = {"dtype": HOSTILE, "phase": "sustained", HOSTILE: HOSTILE}
    bad = Finding(
        category="compute",
        result="fail",
        required=True,
        observed=HOSTILE,
        evidence=(HOSTILE,),
        excludes=HOSTILE,
        **words,
    )
    drawn = msgspec.structs.replace(
        bad, metric="matmul.tflops", subject="n00/gpu1", params=params, observed=2.0, threshold=3.0
    )
    missing = Interval(value=None, low=None, high=None, unit="", basis=HOSTILE)
    judged = score_run(run, load_policy("acceptance"))
    plain = Verdict(
        run_id=HOSTILE, verdict="NO_GO", signable=False, sentence=HOSTILE, reasons=(HOSTILE,), not_judged=(HOSTILE,),
        confidence=HOSTILE, index=None, exclude=(HOSTILE,), findings=(bad, drawn), caveats=(HOSTILE,),
        coverage=judged.coverage, reliability=judged.reliability, policy=judged.policy,
        economics=Economics(mfu=missing, missing=(f"mfu {HOSTILE}", f"goodput {HOSTILE}")),
    )  # fmt: skip
    return run, plain


def test_hostile_names_facts_and_words_never_become_markup(tmp_path: Path) -> None:
    page = render(*hostile_run(tmp_path / "run"))
    outline = Outline(page)
    assert outline.all("img") == []
    assert len(outline.all("script")) == len(outline.all("style")) == 1
    assert not [a for _, a in outline.elements if any(name.startswith("on") for name in a)]
    assert HOSTILE.removesuffix("\x07") in outline.text, "the words are still there to be read"
    assert "{{7*7}}" in outline.text
    assert "\x07" not in page


def test_a_chart_keeps_known_elements_and_attributes_alone() -> None:
    hostile = (
        '<svg xmlns="http://www.w3.org/2000/svg" width="10" height="10" onload="alert(1)"><script>alert(1)</script>'
        '<a href="javascript:alert(1)"><text>x</text></a><image href="http://example.org/x.png"/><style>*{}</style>'
        '<g id="clash" onclick="alert(1)" style="color:red"><path d="M0,0L1.2345,6" fill="#d55e00"/></g>'
        "<foreignObject><b/></foreignObject></svg>"
    )
    clean = svg.clean(hostile, label='"><script>')
    assert not re.search(
        r"script>|onload|onclick|href|style|foreignObject|id=|image", clean.replace("&lt;script&gt;", "")
    )
    assert '<path d="M0,0L1.2,6" class="fill-bad" />' in clean


def test_an_unreadable_drawing_is_an_error_and_not_passed_on() -> None:
    with pytest.raises(ValueError, match="cannot be read"):
        svg.clean("<svg><g></svg>", label="x")
