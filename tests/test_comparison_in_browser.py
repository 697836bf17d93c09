"""A comparison's page in a real browser: nothing is fetched or run; it reads on a phone, in the dark, on paper."""

from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from compared_clusters import Cluster, compared_run
from test_browser import DESK, PHONE, browser, open_page, page_settles, written
from test_page_safety import HOSTILE

from hwlottery.reports.comparison_page import render_comparison
from hwlottery.scoring.comparison import compare

__all__ = ["browser", "open_page"]  # fixtures
pytestmark = pytest.mark.browser
PAPER = {"width": 718, "height": 1040}  # A4 less margins, at 96 dots an inch


def runs(count: int, **odd: Any) -> list[Any]:
    """So many runs, the last slower, dearer and with other software."""
    made = [compared_run(Cluster(seed=seed, nodes=2, devices=2)) for seed in range(1, count)]
    last = Cluster(seed=count, nodes=2, devices=2)
    return [*made, compared_run(last, slower={"training": 0.8, "memory": 0.9}, price=3.5, **odd)]


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = compare(runs(3, facts={"software.torch": "2.9.0"}))
    return written(tmp_path_factory.mktemp("three"), render_comparison(found, "0"))


@pytest.fixture(scope="module")
def ten(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("ten"), render_comparison(compare(runs(10)), "0"))


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    names = {"provider": HOSTILE, "cluster": HOSTILE}
    found = compare(runs(2, header=names, facts={"software.torch": HOSTILE, "software.driver": HOSTILE}))
    return written(tmp_path_factory.mktemp("hostile"), render_comparison(found, HOSTILE))


PAGES = ["three", "ten", "hostile"]


@pytest.mark.parametrize("name", PAGES)
def test_it_says_nothing_asks_for_nothing_and_breaks_no_rule(
    name: str, open_page: Any, request: pytest.FixtureRequest
) -> None:
    place = request.getfixturevalue(name)
    watched = open_page(place)
    watched.page.evaluate("document.querySelectorAll('details').forEach((each) => (each.open = true))")
    page_settles(watched.page)
    assert watched.said == []
    assert watched.asked == [place.as_uri()]
    assert watched.page.evaluate("document.scripts.length") == 0
    assert watched.page.locator("img, [style]").count() == 0


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("viewport", [PHONE, {"width": 390, "height": 844}, DESK])
def test_no_sideways_scrolling_of_the_page(
    name: str, viewport: dict[str, int], open_page: Any, request: pytest.FixtureRequest
) -> None:
    page = open_page(request.getfixturevalue(name), viewport=viewport).page
    page.evaluate("document.querySelectorAll('details').forEach((each) => (each.open = true))")
    assert page.evaluate("document.documentElement.scrollWidth") <= viewport["width"]


def test_who_is_ahead_stands_on_the_first_screen_with_the_order(three: Path, open_page: Any) -> None:
    page = open_page(three).page
    for words in (".ahead .sentence", "table >> nth=0"):
        box = page.locator(words).bounding_box()
        assert box is not None
        assert box["y"] + box["height"] <= DESK["height"]
    assert page.locator(".ahead .sentence").inner_text().startswith("By cost of a useful PFLOP-day: ")


def test_a_chart_has_a_dot_a_run_and_a_bracket_for_what_cannot_be_told_apart(three: Path, open_page: Any) -> None:
    page = open_page(three).page
    chart = page.locator("figure", has_text="Training speed:")
    assert chart.locator("figcaption").inner_text().endswith("cannot be told apart")
    dots = chart.locator("path[data-tip], circle[data-tip]").all()
    assert [dot.get_attribute("data-tip").split(" ")[0] for dot in dots].count("C") == 1
    assert len(dots) == 3
    assert chart.locator(".fill-bad").count() == 1, "the slower one is marked"


@pytest.mark.parametrize("name", ["three", "hostile"])
def test_it_prints_on_two_sheets_at_most(name: str, open_page: Any, request: pytest.FixtureRequest) -> None:
    page = open_page(request.getfixturevalue(name), viewport=PAPER).page
    content = page.pdf(format="A4", prefer_css_page_size=True)
    assert content.startswith(b"%PDF")
    if name == "three":
        assert content.count(b"/Type /Page\n") <= 2
    page.emulate_media(media="print")
    wide = "[...document.querySelectorAll('table, svg')].filter((t) => t.getBoundingClientRect().right > 720).length"
    assert page.evaluate(wide) == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["three", "ten"])
def test_accessibility_rules_hold(name: str, scheme: str, open_page: Any, request: pytest.FixtureRequest) -> None:
    page = open_page(request.getfixturevalue(name), color_scheme=scheme, bypass_csp=True).page
    page.evaluate("document.querySelectorAll('details').forEach((each) => (each.open = true))")
    page.evaluate(resources.files("axe_core_python").joinpath("axe.min.js").read_text(encoding="utf-8"))
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    grave = [each for each in found["violations"] if each["impact"] in ("serious", "critical")]
    assert [(each["id"], [node["html"][:200] for node in each["nodes"]][:3]) for each in grave] == []
