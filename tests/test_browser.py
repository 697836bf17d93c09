"""The page in a real browser: nothing is fetched or run but its own, and it works by keyboard, on a phone, on paper."""

import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from generated_runs import write_run
from playwright.sync_api import Browser, Page, sync_playwright
from test_page_safety import hostile_run

from hwlottery.evidence import read_run
from hwlottery.reports.page import render
from hwlottery.scoring import score_run
from hwlottery.scoring.provider_record import record_from_text

pytestmark = pytest.mark.browser
ARGUMENTS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
PROVIDER = """
promised: {date: 2026-11-20, nodes: 64}
delivered: [{date: 2026-11-25, nodes: 64}]
tickets: [{id: "1", node: n17, opened: 2026-11-26T09:00Z, answered: 2026-11-26T19:00Z, blamed: buyer, what: throttles}]
stack_changes: [{date: 2026-11-26, what: driver 570 to 550}]
sla: {answer_hours: 4}
"""
PHONE = {"width": 360, "height": 740}
DESK = {"width": 1280, "height": 800}
A4 = {"width": 703, "height": 1017}  # less margins, at 96 dots an inch
LETTER = {"width": 725, "height": 950}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """The system's Chromium."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        pytest.skip("no Chromium: apt-get install chromium")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=chromium, args=ARGUMENTS)
        yield started
        started.close()


@pytest.fixture(scope="module")
def smoke(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of one node of CPUs."""
    folder = tmp_path_factory.mktemp("smoke")
    faults = ["tool_missing@n00"]
    run = read_run(write_run(folder / "run", nodes=1, accelerators=2, device="cpu", policy="smoke", faults=faults))
    return written(folder, render(run, score_run(run)))


@pytest.fixture(scope="module")
def rental(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of 64 nodes of eight GPUs with two faults."""
    folder = tmp_path_factory.mktemp("rental")
    faults = ["slow@n17/gpu3=0.78", "ecc@n41/gpu2=1"]
    run = read_run(write_run(folder / "run", nodes=64, faults=faults))
    return written(folder, render(run, score_run(run), record_from_text(PROVIDER, "provider.yaml")))


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of six nodes, of which two have a slow link between them."""
    folder = tmp_path_factory.mktemp("pairs")
    run = read_run(write_run(folder / "run", nodes=6, accelerators=2, faults=["slow_link@n01~n04=0.5"]))
    return written(folder, render(run, score_run(run)))


@pytest.fixture(scope="module")
def gaps(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same with a pair of which no value came."""
    folder = tmp_path_factory.mktemp("gaps")
    faults = ["slow_link@n01~n04=0.5", "no_pair@n02~n03"]
    run = read_run(write_run(folder / "run", nodes=6, accelerators=2, faults=faults))
    return written(folder, render(run, score_run(run)))


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of 512 nodes, of which one is slow with each partner."""
    folder = tmp_path_factory.mktemp("many")
    faults = ["slow_node@n17=0.7", "leaves@cluster=16"]
    run = read_run(write_run(folder / "run", nodes=512, accelerators=1, faults=faults))
    return written(folder, render(run, score_run(run)))


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a run whose names, facts and words are markup."""
    folder = tmp_path_factory.mktemp("hostile")
    return written(folder, render(*hostile_run(folder / "run")))


def written(folder: Path, page: str) -> Path:
    place = folder / "report.html"
    place.write_text(page, encoding="utf-8")
    return place


def page_settles(page: Page) -> None:
    """Give the browser two frames to say what it has to say."""
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    page.wait_for_timeout(100)


@dataclass
class Watched:
    """A page with all it said and asked for."""

    page: Page
    said: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)


@pytest.fixture
def open_page(browser: Browser) -> Iterator[Any]:
    """Open a page and watch its console, its errors, its dialogs, its requests and its policy violations."""
    contexts = []

    def opened(place: Path, viewport: dict[str, int] = DESK, **options: Any) -> Watched:
        context = browser.new_context(viewport=viewport, **options)
        contexts.append(context)
        page = context.new_page()
        watched = Watched(page)
        page.on("console", lambda message: watched.said.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: watched.said.append(f"error: {error}"))
        page.on("dialog", lambda dialog: (watched.said.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        page.on("request", lambda request: watched.asked.append(request.url))
        page.add_init_script(
            "addEventListener('securitypolicyviolation', (e) => console.error('policy: ' + e.violatedDirective))"
        )
        page.goto(place.as_uri())
        return watched

    yield opened
    for context in contexts:
        context.close()


@pytest.mark.parametrize("name", ["smoke", "rental", "pairs", "hostile"])
def test_the_page_says_nothing_asks_for_nothing_and_breaks_no_rule(
    name: str, open_page: Any, request: pytest.FixtureRequest
) -> None:
    place = request.getfixturevalue(name)
    watched = open_page(place)
    page = watched.page
    for button in page.locator("tbody.finding .open").all()[:5]:
        button.click()
    for heading in page.locator("#findings-table thead th button").all():
        heading.click()
    page.evaluate("document.querySelectorAll('details').forEach((each) => (each.open = true))")
    page_settles(page)
    assert watched.said == []
    assert watched.asked == [place.as_uri()]


def test_hostile_words_become_no_element(hostile: Path, open_page: Any) -> None:
    page = open_page(hostile).page
    assert page.locator("img").count() == 0
    assert page.locator("[onload], [onerror], [style]:not(#tip)").count() == 0
    assert page.evaluate("document.scripts.length") == 1
    assert page.get_by_text("onerror=alert(1)").first.is_visible()


def test_the_policy_forbids_scripts_that_are_not_ours(smoke: Path, open_page: Any) -> None:
    watched = open_page(smoke)
    ran = watched.page.evaluate(
        "() => { const s = document.createElement('script'); s.textContent = 'window.ran = true';"
        " document.body.append(s); return window.ran === true; }"
    )
    page_settles(watched.page)
    assert ran is False
    assert any("policy: script-src" in line for line in watched.said)


@pytest.mark.parametrize("name", ["smoke", "rental"])
def test_verdict_reasons_and_figures_stand_on_the_first_screen(
    name: str, open_page: Any, request: pytest.FixtureRequest
) -> None:
    page = open_page(request.getfixturevalue(name)).page
    for part in (".verdict h2", ".sentence", ".signable", ".figures", ".categories"):
        box = page.locator(part).bounding_box()
        assert box is not None
        assert box["y"] >= 0
        assert box["y"] + box["height"] <= DESK["height"]


@pytest.mark.parametrize("name", ["smoke", "rental", "pairs", "hostile"])
def test_a_phone_needs_no_sideways_scrolling(name: str, open_page: Any, request: pytest.FixtureRequest) -> None:
    page = open_page(request.getfixturevalue(name), viewport=PHONE).page
    page.evaluate("document.querySelectorAll('details').forEach((each) => (each.open = true))")
    page.evaluate("document.querySelectorAll('tbody.finding .open').forEach((each) => each.click())")
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    page.evaluate("window.scrollTo(500, 0)")
    assert page.evaluate("window.scrollX") == 0


@pytest.mark.parametrize("name", ["smoke", "rental", "hostile"])
def test_a_phone_shows_each_finding_whole_without_scrolling_its_table(
    name: str, open_page: Any, request: pytest.FixtureRequest
) -> None:
    """Subject, check, observed and expected stand within the width of the screen, each with its name."""
    page = open_page(request.getfixturevalue(name), viewport={"width": 390, "height": 844}).page
    box = page.locator(".scroll.findings")
    assert box.evaluate("(each) => each.scrollWidth <= each.clientWidth")
    row = page.locator("tbody.finding > tr:first-child").first
    for part in ("th", "[data-label=Check]", "[data-label=Result]"):
        place = row.locator(part).bounding_box()
        assert place is not None
        assert place["x"] >= 0
        assert place["x"] + place["width"] <= 390
    name_of = "(cell) => getComputedStyle(cell, '::before').content"
    assert row.locator("[data-label=Check]").evaluate(name_of) == '"Check"'
    for label in ("Observed", "Expected"):
        cells = page.locator(f"tbody.finding td[data-label={label}]").all()
        assert all(cell.is_visible() or cell.inner_text() in ("\N{EM DASH}", "") for cell in cells)
    first_cell = "document.querySelector('#compute table.cards tbody td').getBoundingClientRect().right"
    if name != "hostile":
        assert page.evaluate(first_cell) <= 390


def test_the_mark_of_a_go_that_is_not_signable_is_open_and_that_of_a_signable_one_filled(
    smoke: Path, rental: Path, open_page: Any
) -> None:
    fill = "(shape) => getComputedStyle(shape).fill"
    smoke_page, rental_page = open_page(smoke).page, open_page(rental).page
    assert smoke_page.locator(".signable").inner_text() == "not signable"
    if smoke_page.locator(".verdict.GO, .verdict.CONDITIONAL").count():
        assert smoke_page.locator(".shape .frame").evaluate(fill) == "none"
    assert rental_page.locator(".signable").inner_text() == "signable"
    assert rental_page.locator(".shape .frame").evaluate(fill) != "none"


def test_a_finding_opens_and_closes_by_keyboard(rental: Path, open_page: Any) -> None:
    page = open_page(rental).page
    button = page.locator("tbody.finding .open").first
    detail = page.locator("tr.detail").first
    assert not detail.is_visible()
    button.focus()
    page.keyboard.press("Enter")
    assert detail.is_visible()
    assert button.get_attribute("aria-expanded") == "true"
    assert "samples from" in detail.inner_text()
    page.keyboard.press("Enter")
    assert not detail.is_visible()


def test_findings_sort_by_keyboard_and_say_so(rental: Path, open_page: Any) -> None:
    page = open_page(rental).page
    heading = page.locator("#findings-table thead th", has_text="Subject")
    heading.locator("button").focus()
    page.keyboard.press("Enter")
    assert heading.get_attribute("aria-sort") == "ascending"
    page.keyboard.press("Enter")
    assert heading.get_attribute("aria-sort") == "descending"
    subjects = page.locator("#findings-table tbody .open").all_inner_texts()
    assert len(subjects) > 2
    assert subjects[0].removeprefix("▸\N{NO-BREAK SPACE}").startswith("n41")


def test_tables_of_figures_sort_by_value_and_not_by_text(rental: Path, open_page: Any) -> None:
    page = open_page(rental).page
    table = page.locator("#compute table").first
    median = table.locator("thead th", has_text="median")
    median.locator("button").click()
    place = int(median.evaluate("(cell) => cell.cellIndex"))
    values = table.evaluate(f"(t) => [...t.tBodies[0].rows].map((row) => Number(row.cells[{place}].dataset.sort))")
    assert values == sorted(values)
    assert values[0] != values[-1]


def test_filters_narrow_the_findings_by_keyboard_and_count_them(rental: Path, open_page: Any) -> None:
    page = open_page(rental).page
    every = page.locator("tbody.finding:visible").count()
    page.get_by_label("Node or subject").focus()
    page.keyboard.type("n41")
    fitting = page.locator("tbody.finding[data-words*=n41]").count()
    assert 0 < fitting < every
    assert page.locator("#shown").inner_text() == f"{fitting} of {every} shown"
    assert page.locator("tbody.finding:visible").count() == fitting
    page.get_by_label("Node or subject").fill("")
    page.get_by_label("Category").select_option("health")
    assert 0 < page.locator("tbody.finding:visible").count() < every
    page.get_by_label("Category").select_option("")
    assert page.locator("tbody.finding:visible").count() == every


def test_what_to_exclude_is_copied_as_it_stands(rental: Path, open_page: Any) -> None:
    page = open_page(rental, permissions=["clipboard-read", "clipboard-write"]).page
    page.locator("[data-copy=exclude-option]").click()
    page.locator("[data-copy=exclude-option]", has_text="Copied").wait_for()
    assert page.evaluate("navigator.clipboard.readText()") == "--exclude=n17,n41"


def test_a_mark_under_the_pointer_tells_its_value(rental: Path, open_page: Any) -> None:
    page = open_page(rental).page
    page.locator("#compute figure [data-tip^='n17/gpu3']").first.hover()
    assert page.locator("#tip").inner_text().startswith("n17/gpu3: 5")


def square(page: Page, row: int, column: int, nodes: int) -> dict[str, float]:
    """Where the middle of a square is on the matrix: its squares end at the lower right edge, 2 pixels away."""
    box = page.locator("#fabric canvas.matrix").bounding_box()
    assert box is not None
    side = min(36, (box["width"] - 2) // nodes)
    return {name: box["width"] - 2 - (nodes - at - 0.5) * side for name, at in (("x", column), ("y", row))}


def test_a_square_of_the_matrix_tells_its_pair_value_share_and_retests(pairs: Path, open_page: Any) -> None:
    page = open_page(pairs).page
    matrix = page.locator("#fabric canvas.matrix")
    matrix.hover(position=square(page, 1, 4, 6))
    told = page.locator("#tip").inner_text()
    assert told.startswith("n01~n04: ")
    assert 85 < float(told.split()[1]) < 105, "the slow pair"
    assert " GB/s, " in told
    assert told.endswith("% of the usual, retested 2 times")
    assert 45 < int(told.split(", ")[1].split()[0]) < 55
    matrix.hover(position=square(page, 2, 0, 6))
    assert page.locator("#tip").inner_text().startswith("n00~n02: 1")
    matrix.hover(position=square(page, 0, 0, 6))
    assert page.locator("#tip").inner_text() == "n00"


def test_a_tap_on_a_square_tells_it_on_a_phone(pairs: Path, open_page: Any) -> None:
    page = open_page(pairs, viewport=PHONE, has_touch=True, is_mobile=True).page
    page.locator("#fabric canvas.matrix").tap(position=square(page, 4, 1, 6))
    assert page.locator(".pair").inner_text().startswith("n01~n04: 9")


def test_the_matrix_is_read_by_keyboard_and_enter_goes_to_what_stands_out(pairs: Path, open_page: Any) -> None:
    page = open_page(pairs).page
    matrix, told = page.locator("#fabric canvas.matrix"), page.locator(".pair")
    matrix.focus()
    page.keyboard.press("ArrowRight")
    assert told.inner_text().startswith("n00~n01: 1")
    page.keyboard.press("ArrowDown")
    assert told.inner_text() == "n01"
    page.keyboard.press("Enter")
    assert told.inner_text().startswith("n01~n04: 9")
    assert told.get_attribute("role") == "status"
    for _ in range(9):
        page.keyboard.press("ArrowUp")
    assert told.inner_text().startswith("n00~n04: 1"), "the edge holds"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_slow_fast_and_not_measured_look_different_and_the_diagonal_is_empty(
    scheme: str, gaps: Path, open_page: Any
) -> None:
    page = open_page(gaps, color_scheme=scheme).page
    places = [square(page, *at, 6) for at in ((0, 2), (1, 4), (2, 3), (0, 0))]
    seen = page.locator("canvas.matrix").evaluate(
        "(c, places) => places.map(({x, y}) => [...c.getContext('2d').getImageData(x - 9, y - 7, 1, 1).data])", places
    )
    fast, slow, nothing, diagonal = seen
    assert sum(slow[:3]) < sum(fast[:3]) - 150
    assert fast[2] < 100, "yellow"
    assert max(nothing[:3]) - min(nothing[:3]) < 30, "grey"
    assert sum(nothing[:3]) > sum(slow[:3]) + 200
    assert diagonal[3] == 0


@pytest.mark.slow
@pytest.mark.parametrize("viewport", [DESK, PHONE])
def test_five_hundred_nodes_are_drawn_within_the_budget(many: Path, viewport: dict[str, int], open_page: Any) -> None:
    assert many.stat().st_size < 5_000_000
    page = open_page(many, viewport=viewport).page
    assert page.evaluate("document.documentElement.scrollWidth") <= viewport["width"]
    page.locator("#fabric canvas.matrix").focus()
    page.keyboard.press("Enter")
    assert "n17" in page.locator(".pair").inner_text()


def test_the_page_reads_without_its_script(rental: Path, open_page: Any) -> None:
    page = open_page(rental, java_script_enabled=False).page
    assert page.locator("tr.detail").first.is_visible()
    assert not page.locator(".filters").is_visible()
    assert not page.locator("button.copy").first.is_visible()


@pytest.mark.parametrize(("paper", "height"), [("A4", 842), ("Letter", 792)])
def test_the_page_prints_on_the_paper_that_is_there(paper: str, height: int, smoke: Path, open_page: Any) -> None:
    content = open_page(smoke).page.pdf(format=paper, prefer_css_page_size=True)
    boxes = re.findall(rb"/MediaBox \[0 0 [\d.]+ ([\d.]+)\]", content)
    assert len(boxes) > 5
    assert {round(float(each)) for each in boxes} <= {height, height + 1}


def test_everything_is_open_on_paper(rental: Path, open_page: Any) -> None:
    page = open_page(rental).page
    page.emulate_media(media="print")
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert page.locator("tr.detail").first.is_visible()
    assert page.locator("#appendix pre").last.is_visible()
    assert not page.locator(".filters").is_visible()


@pytest.mark.parametrize("name", ["rental", "pairs"])
def test_on_a_phone_the_labels_of_reference_lines_are_seen_without_scrolling(
    name: str, open_page: Any, request: pytest.FixtureRequest
) -> None:
    page = open_page(request.getfixturevalue(name), viewport={"width": 390, "height": 844}).page
    labels = page.locator(".chart svg text").filter(has_text=re.compile(r"^(median|usual|slow below|good|demanded) "))
    assert labels.count() >= 3
    for label in labels.all():
        box, within = label.evaluate(
            "(t) => [t, t.closest('.chart')].map((e) => e.getBoundingClientRect()).map((b) => [b.left, b.right])"
        )
        assert within[0] <= box[0], label.text_content()
        assert box[1] <= within[1], label.text_content()


def test_sixteen_nodes_are_under_twenty_sheets_with_what_is_needed_to_sign(tmp_path: Path, open_page: Any) -> None:
    run = read_run(write_run(tmp_path / "run", nodes=16, faults=["slow@n01/gpu3=0.78"]))
    page = open_page(written(tmp_path, render(run, score_run(run)))).page
    content = page.pdf(format="A4", prefer_css_page_size=True)
    assert len(re.findall(rb"/Type\s*/Page[^s]", content)) < 20
    assert len(content) < 2_000_000
    page.emulate_media(media="print")
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    whole = page.locator("table", has=page.locator("caption", has_text=re.compile("^Nodes$")))
    assert whole.locator("tbody tr:visible").count() == 16
    for printed in (run.header.policy.sha256, "What most have", "trials: not printed; in the page as HTML"):
        assert page.get_by_text(printed).first.is_visible()
    assert not page.get_by_text("matmul:products").first.is_visible()
    longest = max(page.locator("table.long").all(), key=lambda table: table.locator("tbody tr").count())
    rows = longest.locator("tbody tr").count()
    assert rows > 40
    assert longest.locator("tbody tr:visible").count() == 8
    assert page.locator("#findings-head").bounding_box()["y"] < A4["height"]
    page.emulate_media(media="screen")
    assert longest.locator("tbody tr:visible").count() == rows


@pytest.mark.parametrize("paper", [A4, LETTER])
def test_the_first_printed_page_holds_the_whole_verdict(paper: dict[str, int], rental: Path, open_page: Any) -> None:
    page = open_page(rental, viewport=paper).page
    page.emulate_media(media="print")
    box = page.locator("header.first").bounding_box()
    assert box is not None
    assert box["y"] + box["height"] <= paper["height"]


@pytest.mark.parametrize("name", ["smoke", "rental", "pairs"])
def test_no_table_is_wider_than_the_paper(name: str, open_page: Any, request: pytest.FixtureRequest) -> None:
    page = open_page(request.getfixturevalue(name), viewport={"width": 703, "height": 1017}).page
    page.emulate_media(media="print")
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    wide = "[...document.querySelectorAll('table')].filter((t) => t.getBoundingClientRect().right > 704)"
    assert page.evaluate(f"{wide}.map((t) => t.textContent.trim().slice(0, 60))") == []


@pytest.mark.parametrize(
    ("name", "scheme"),
    [("smoke", "light"), ("smoke", "dark"), ("pairs", "dark")]
    + [pytest.param("rental", scheme, marks=pytest.mark.slow) for scheme in ("light", "dark")],
)
def test_accessibility_rules_hold(name: str, scheme: str, open_page: Any, request: pytest.FixtureRequest) -> None:
    """axe-core with everything open; it is injected past the page's own policy."""
    page = open_page(request.getfixturevalue(name), color_scheme=scheme, bypass_csp=True).page
    page.evaluate("document.querySelectorAll('tbody.finding .open').forEach((each) => each.click())")
    page.evaluate("document.querySelectorAll('details').forEach((each) => (each.open = true))")
    page.evaluate(resources.files("axe_core_python").joinpath("axe.min.js").read_text(encoding="utf-8"))
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    grave = [each for each in found["violations"] if each["impact"] in ("serious", "critical")]
    assert [(each["id"], [node["html"][:200] for node in each["nodes"]][:3]) for each in grave] == []
