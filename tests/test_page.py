"""The page: what it says, what it escapes, and that it holds nothing but itself."""

import re
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest
from generated_runs import START, make_run, write_records, write_run
from hypothesis import given, settings
from hypothesis import strategies as st

from hwlottery.evidence import Event, Fact, Run, RunWriter, measured, read_run
from hwlottery.evidence.reading import Problem
from hwlottery.reports import svg
from hwlottery.reports.first_screen import categories
from hwlottery.reports.numbers import figure, roughly, significant, span
from hwlottery.reports.page import content_policy, render
from hwlottery.reports.telemetry import telemetry_chart
from hwlottery.scoring import load_policy, score_run
from hwlottery.scoring.verdict import Economics, Finding, Interval, Verdict

HOSTILE = "</script></style><img src=x onerror=alert(1)><svg onload=alert(2)>\"'`{{7*7}}\x07"


@pytest.fixture(scope="module")
def smoke(tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, Verdict]:
    """One node of CPUs, judged by the smoke policy."""
    place = tmp_path_factory.mktemp("smoke") / "run"
    run = read_run(write_run(place, nodes=1, accelerators=2, device="cpu", policy="smoke", price=None, hours=0.01))
    return run, score_run(run)


@pytest.fixture(scope="module")
def rental(tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, Verdict]:
    """Sixty-four nodes of eight GPUs, two of them faulty."""
    faults = ["slow@n17/gpu3=0.78", "ecc@n41/gpu2=1", "tool_missing@n05"]
    run = read_run(write_run(tmp_path_factory.mktemp("rental") / "run", nodes=64, faults=faults))
    return run, score_run(run)


@pytest.fixture(scope="module")
def rental_page(rental: tuple[Run, Verdict]) -> str:
    return render(*rental)


@pytest.fixture(scope="module")
def smoke_page(smoke: tuple[Run, Verdict]) -> str:
    return render(*smoke)


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


def test_the_verdict_and_its_reasons_come_before_any_figure_or_section(
    rental: tuple[Run, Verdict], rental_page: str
) -> None:
    text = Outline(rental_page).text
    verdict = rental[1]
    places = [
        text.index(part) for part in (verdict.sentence, verdict.reasons[0], "Model FLOPs utilisation", "Findings")
    ]
    assert places == sorted(places)


def test_caveats_are_the_first_words_under_the_masthead(smoke: tuple[Run, Verdict], smoke_page: str) -> None:
    text = Outline(smoke_page).text
    assert smoke[1].caveats
    assert all(text.index(caveat) < text.index(smoke[1].sentence) for caveat in smoke[1].caveats)
    assert "not signable" in text


def test_a_run_on_cpus_shows_its_rate_and_says_what_mfu_and_money_lack(smoke_page: str) -> None:
    text = Outline(smoke_page).text
    assert "Matrix products, a slot" in text
    assert "MFU:" in text
    assert "--price USD_PER_GPU_HOUR" in text


def test_excluded_nodes_stand_ready_to_copy(rental_page: str) -> None:
    assert "--exclude=n17,n41" in Outline(rental_page).text


def test_the_chart_of_a_slow_gpu_says_so_in_its_title(rental_page: str) -> None:
    assert "n17/gpu3 is 22 % below its peers" in Outline(rental_page).text


def test_every_section_has_an_answer_and_says_what_it_cannot_tell(smoke_page: str) -> None:
    outline = Outline(smoke_page)
    sections = [each for each in outline.all("section") if each.get("class") == "probe"]
    assert [each["id"] for each in sections] == [
        "compute", "memory", "fabric", "topology", "storage", "burn_in", "health", "software",
    ]  # fmt: skip
    assert outline.text.count("What it cannot tell:") == len(sections)


def test_every_link_within_the_page_leads_somewhere(rental_page: str) -> None:
    outline = Outline(rental_page)
    ids = [attributes["id"] for _, attributes in outline.elements if "id" in attributes]
    assert len(ids) == len(set(ids)), "an id stands twice"
    inner = [a["href"] for a in outline.all("a") if (a["href"] or "").startswith("#")]
    assert inner
    assert {str(href)[1:] for href in inner} <= set(ids)


def test_headings_descend_one_level_at_a_time(rental_page: str) -> None:
    levels = [int(tag[1]) for tag, _ in Outline(rental_page).elements if re.fullmatch(r"h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))


def test_the_page_asks_the_network_for_nothing_and_allows_one_style_and_one_script(smoke_page: str) -> None:
    outline = Outline(smoke_page)
    policy = next(m["content"] for m in outline.all("meta") if m.get("http-equiv") == "Content-Security-Policy")
    style, script = (re.findall(rf"<{tag}>(.*?)</{tag}>", smoke_page, re.DOTALL) for tag in ("style", "script"))
    assert len(style) == len(script) == 1
    assert policy == content_policy(style[0], script[0])
    assert "default-src 'none'" in str(policy)
    assert "unsafe" not in str(policy)
    assert not [a for _, a in outline.elements if a.keys() & {"src", "style", "onclick", "onload", "onerror", "srcset"}]
    assert [a["href"] for a in outline.all("link")] == ["data:,"]


def test_our_own_script_stays_under_ten_kilobytes(smoke_page: str) -> None:
    assert len(re.findall(r"<script>(.*?)</script>", smoke_page, re.DOTALL)[0].encode()) < 10_000


def test_the_page_of_64_nodes_stays_under_one_and_a_half_megabytes(rental_page: str) -> None:
    assert len(rental_page.encode()) < 1_500_000


def test_the_same_run_and_verdict_make_the_same_page(smoke: tuple[Run, Verdict], smoke_page: str) -> None:
    assert render(*smoke) == smoke_page


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


def test_charts_carry_no_ids_that_could_clash(rental_page: str) -> None:
    drawings = re.findall(r"<svg .*?</svg>", rental_page, re.DOTALL)
    assert len(drawings) > 6
    assert not [drawing for drawing in drawings if " id=" in drawing]


def test_each_chart_has_a_text_alternative(rental_page: str) -> None:
    charts = [a for a in Outline(rental_page).all("svg") if a.get("aria-hidden") != "true"]
    assert len(charts) >= 6
    assert all(chart.get("role") == "img" and chart.get("aria-label") for chart in charts)


def test_a_category_without_a_check_is_never_shown_as_a_pass(smoke: tuple[Run, Verdict]) -> None:
    bare = msgspec.structs.replace(smoke[1], findings=())
    assert {state.word for state in categories(bare)} == {"no check"}


def test_a_category_whose_required_value_is_missing_is_not_measured(smoke: tuple[Run, Verdict]) -> None:
    good = Finding(check="a", category="memory", subject="n00", result="pass", required=True)
    missing = msgspec.structs.replace(good, check="b", result="not_measured")
    both = msgspec.structs.replace(smoke[1], findings=(good, missing))
    assert [state.result for state in categories(both) if state.name == "memory"] == ["not_measured"]


def test_damaged_evidence_is_said_with_each_defect(tmp_path: Path) -> None:
    place = write_run(tmp_path / "run", nodes=1, accelerators=2, device="cpu", policy="smoke")
    events = (place / "events.jsonl").read_text().splitlines(keepends=True)
    (place / "events.jsonl").write_text("".join(events[:-1]))
    run = read_run(place)
    text = Outline(render(run, score_run(run))).text
    assert "The evidence is not whole" in text
    assert all(problem.detail in text for problem in run.problems)


def test_a_run_that_holds_nothing_still_makes_a_page(tmp_path: Path) -> None:
    header, _ = make_run(nodes=1, accelerators=1, policy="smoke", device="cpu")
    RunWriter.create(tmp_path / "run", header).close()
    run = read_run(tmp_path / "run")
    text = Outline(render(run, score_run(run))).text
    assert text.count("Not measured") >= 7


def test_the_judging_policy_is_named_where_it_is_not_the_run_s_own(smoke: tuple[Run, Verdict]) -> None:
    other = msgspec.structs.replace(smoke[1].policy, name="stricter", sha256="f" * 64)
    text = Outline(render(smoke[0], msgspec.structs.replace(smoke[1], policy=other))).text
    assert "judged by another: stricter" in text


@pytest.mark.parametrize(
    ("value", "unit", "shown"),
    [
        (0.384, "share", "38.4 %"),
        (731.94, "TFLOPS", "732 TFLOPS"),
        (31_412.0, "USD", "31,400 USD"),
        (0.0123, "s", "12.3 ms"),
        (1152, "elements", "1,152 elements"),
        (1.0, "errors", "1 error"),
        (2.0**26, "bytes", "64 MiB"),
        (0.0234, "1/node-day", "0.0234 /node-day"),
        (None, "GB/s", "\N{EM DASH}"),
        (True, "", "yes"),
        (float("nan"), "GB/s", "not finite"),
        ("6.8.0", "", "6.8.0"),
    ],
)
def test_a_figure_reads_as_people_write_it(value: float | str | None, unit: str, shown: str) -> None:
    assert figure(value, unit) == shown


def test_an_interval_names_its_unit_once() -> None:
    assert span(0.379, 0.388, "share") == "37.9\N{EN DASH}38.8 %"
    assert span(None, 0.1, "1/node-day") == "at most 0.100 /node-day"


@given(st.floats(min_value=1e-3, max_value=1e9))
@settings(max_examples=200, deadline=None)
def test_a_number_has_at_most_three_significant_digits_and_is_near_the_value(value: float) -> None:
    shown = significant(value)
    digits = shown.replace(",", "").replace(".", "").strip("0")
    assert len(digits) <= 3
    assert float(shown.replace(",", "")) == pytest.approx(value, rel=0.006)


@given(st.floats(min_value=0, max_value=1))
@settings(max_examples=100, deadline=None)
def test_a_difference_above_zero_is_never_shown_as_none(share: float) -> None:
    assert (roughly(share) == "0 %") == (share == 0)


def test_telemetry_that_is_no_parquet_is_left_out(tmp_path: Path) -> None:
    part = tmp_path / "telemetry" / "n00" / "0001.parquet"
    part.parent.mkdir(parents=True)
    part.write_bytes(b"PAR1 cut off")
    assert telemetry_chart(tmp_path) is None


def test_telemetry_is_drawn_over_its_minutes(tmp_path: Path) -> None:
    import pyarrow
    import pyarrow.parquet

    folder = tmp_path / "telemetry" / "n00"
    folder.mkdir(parents=True)
    rows = [
        {"node": "n00", "subject": "n00/gpu0", "quantity": "temperature", "minute": minute, "minimum": 60.0,
         "mean": 65.0, "maximum": 70.0 + minute, "count": 60, "bits": 0}
        for minute in range(5)
    ]  # fmt: skip
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), folder / "0001.parquet")
    chart = telemetry_chart(tmp_path)
    assert chart is not None
    assert chart.title == "Highest temperature under load: 74 °C"
