"""The page: what it says, what it escapes, and that it holds nothing but itself."""

import re
from importlib import resources
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest
from generated_runs import make_run, write_run
from test_page_safety import Outline

from hwlottery.evidence import Run, RunWriter, read_run
from hwlottery.reports.first_screen import categories
from hwlottery.reports.page import content_policy, render
from hwlottery.scoring import score_run
from hwlottery.scoring.verdict import Finding, Verdict


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
        "compute", "memory", "fabric", "topology", "storage", "burn_in", "health", "software", "economics", "delivery",
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


def test_our_own_script_has_no_template_within_a_template() -> None:
    """What shortens it would take the spaces out of the inner one."""
    script = (resources.files("hwlottery.reports") / "templates" / "page.js").read_text(encoding="utf-8")
    assert "`" in script
    assert not re.search(r"\$\{[^}]*`", script)


def test_the_page_of_64_nodes_stays_under_one_and_a_half_megabytes(rental_page: str) -> None:
    assert len(rental_page.encode()) < 1_500_000


def test_the_same_run_and_verdict_make_the_same_page(smoke: tuple[Run, Verdict], smoke_page: str) -> None:
    assert render(*smoke) == smoke_page


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
