"""The page's calculator in a real browser gives the figures of the Python formulas, and says what it cannot use."""

import json
import math
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from generated_runs import make_run, write_records
from playwright.sync_api import Page, sync_playwright

from hwlottery.evidence import Run, read_run
from hwlottery.reports.page import render
from hwlottery.scoring import score_run
from hwlottery.scoring.projection import Outlook, Situation, outlook
from hwlottery.scoring.verdict import Verdict

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, Verdict]:
    """Sixteen nodes, of which one is taken out, with a training run asked for."""
    header, records = make_run(nodes=16, accelerators=2, faults=["never_joined@n05"])
    header = msgspec.structs.replace(header, run_flops=1e21)
    run = read_run(write_records(tmp_path_factory.mktemp("calculator") / "run", header, records))
    return run, score_run(run)


@pytest.fixture(scope="module")
def page(judged: tuple[Run, Verdict], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """The page, opened from a file."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        pytest.skip("no Chromium: apt-get install chromium")
    place = tmp_path_factory.mktemp("page") / "report.html"
    place.write_text(render(*judged), encoding="utf-8")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--headless", "--no-sandbox"])
        opened = browser.new_page()
        said: list[str] = []
        opened.on("console", lambda message: said.append(message.text))
        opened.on("pageerror", lambda error: said.append(str(error)))
        opened.goto(place.as_uri())
        yield opened
        browser.close()
        assert said == []


def situation(judged: tuple[Run, Verdict]) -> Situation:
    at = judged[1].economics.situation
    assert at is not None
    return at


def fill(page: Page, at: Situation) -> None:
    """Write a situation into the calculator."""
    given = {
        "price": at.usd_per_gpu_hour,
        "nodes": at.nodes,
        "rate": at.failures_per_node_day * 1000,
        "save": at.save_s,
        "recovery": at.recovery_s / 60,
        "wait": at.wait_s / 3600,
        "spares": at.spare_nodes,
        "flops": at.run_flops,
    }
    for name, value in given.items():
        page.locator(f"#if-{name}").fill("" if value is None else repr(value))


def shown(page: Page) -> Outlook:
    """What the calculator gives, in full precision; None where it shows a dash."""

    def value(name: str) -> float | None:
        output = page.locator(f"#then-{name}")
        words, number = output.inner_text(), float(output.get_attribute("value") or "nan")
        assert "NaN" not in words
        assert "∞" not in words
        assert (words == "\N{EM DASH}") == (not math.isfinite(number))
        return number if math.isfinite(number) else None

    return Outlook(
        goodput=value("goodput") or 0.0, effective=value("effective"), usd_per_pflop_day=value("usd"),
        run_s=value("time"), run_usd=value("cost"), interval_s=None,
    )  # fmt: skip


def approx(found: Outlook) -> Any:
    return {
        name: None if value is None else pytest.approx(value, rel=1e-9, abs=1e-300)
        for name, value in msgspec.structs.asdict(found).items()
        if name != "interval_s"
    }


def told(found: Outlook) -> dict[str, float | None]:
    return {name: value for name, value in msgspec.structs.asdict(found).items() if name != "interval_s"}


def test_it_opens_with_the_figures_of_the_run(page: Page, judged: tuple[Run, Verdict]) -> None:
    money, found = judged[1].economics, shown(page)
    assert money.goodput is not None
    assert money.usd_per_pflop_day is not None
    assert money.run_usd is not None
    assert found.goodput == pytest.approx(money.goodput.value, rel=1e-5)
    assert found.usd_per_pflop_day == pytest.approx(money.usd_per_pflop_day.value, rel=1e-5)
    assert found.run_usd == pytest.approx(money.run_usd.value, rel=1e-5)
    assert page.locator("#if-said").inner_text() == ""


@pytest.mark.parametrize(
    "changes",
    [
        {"usd_per_gpu_hour": 3.1},
        {"failures_per_node_day": 0.0},
        {"failures_per_node_day": 0.0065, "save_s": 120.0, "recovery_s": 720.0},
        {"nodes": 2048, "failures_per_node_day": 0.004, "save_s": 120.0},
        {"wait_s": 86_400.0},
        {"wait_s": 0.0, "spare_nodes": 3},
        {"save_s": 1e9},
        {"save_s": 0.001, "failures_per_node_day": 1000.0},
        {"failures_per_node_day": 1000.0, "nodes": 1_000_000},
        {"usd_per_gpu_hour": 0.0},
        {"usd_per_gpu_hour": None, "run_flops": 1e30},
        {"run_flops": None},
    ],
)
def test_it_gives_the_figures_of_the_python_formulas(
    page: Page, judged: tuple[Run, Verdict], changes: dict[str, Any]
) -> None:
    base = situation(judged)
    at = msgspec.structs.replace(base, **changes)
    fill(page, at)
    accelerators = base.accelerators / base.nodes * at.nodes
    idle = base.paid_accelerators - base.accelerators
    expected = outlook(msgspec.structs.replace(at, accelerators=accelerators, paid_accelerators=accelerators + idle))
    found = shown(page)
    if at.usd_per_gpu_hour == 0.0:  # money of nothing is nothing, and no price
        assert found.usd_per_pflop_day == 0.0
    assert told(found) == approx(expected)


@pytest.mark.parametrize(
    ("name", "value", "label"),
    [
        ("nodes", "0", "Nodes that train"),
        ("rate", "-1", "Failures, 1,000 node-days"),
        ("save", "0", "A save, s"),
        ("save", "", "A save, s"),
        ("flops", "-5", "FLOPs of a run"),
    ],
)
def test_what_it_cannot_use_is_named_and_no_figure_is_shown(
    page: Page, judged: tuple[Run, Verdict], name: str, value: str, label: str
) -> None:
    fill(page, situation(judged))
    page.locator(f"#if-{name}").fill(value)
    said = page.locator("#if-said").inner_text()
    assert said.startswith(label)
    assert len(said) > len(label) + 5
    for output in page.locator("#calculator data").all():
        assert output.inner_text() == "\N{EM DASH}"
    fill(page, situation(judged))
    assert page.locator("#if-said").inner_text() == ""


def test_the_way_of_replacement_sets_the_wait_and_works_by_keyboard(page: Page, judged: tuple[Run, Verdict]) -> None:
    fill(page, situation(judged))
    hot, cold, none = judged[1].economics.replacements
    assert hot.usd_per_pflop_day is not None
    assert cold.usd_per_pflop_day is not None
    assert shown(page).usd_per_pflop_day == pytest.approx(cold.usd_per_pflop_day.value, rel=1e-5)
    page.locator("#if-recovery").focus()
    page.keyboard.press("Tab")
    page.keyboard.press("End")
    assert page.locator("#if-wait").input_value() == "24"
    assert shown(page).goodput == pytest.approx(none.goodput.value, rel=1e-5)
    page.keyboard.press("Home")
    assert page.locator("#if-spares").input_value() == str(hot.spare_nodes) == "1"
    assert shown(page).goodput == pytest.approx(hot.goodput.value, rel=1e-5)
    assert shown(page).usd_per_pflop_day == pytest.approx(hot.usd_per_pflop_day.value, rel=1e-5)


def test_every_input_has_its_label(page: Page) -> None:
    for field in page.locator("#calculator input, #calculator select").all():
        assert field.evaluate("(each) => each.labels.length") == 1


def test_without_a_script_the_figures_are_there_and_the_calculator_is_not(
    judged: tuple[Run, Verdict], tmp_path: Path, page: Page
) -> None:
    assert page.context.browser is not None
    context = page.context.browser.new_context(java_script_enabled=False)
    place = tmp_path / "report.html"
    place.write_text(render(*judged), encoding="utf-8")
    plain = context.new_page()
    plain.goto(place.as_uri())
    assert not plain.locator("#calculator").is_visible()
    words = plain.locator("#economics").inner_text()
    context.close()
    for part in ("USD a useful PFLOP-day", "a cold spare", "Time of the training run", "What findings cost"):
        assert part in words


def test_a_page_without_a_measured_save_has_no_calculator(tmp_path: Path) -> None:
    header, _ = make_run(nodes=1, accelerators=1)
    run = read_run(write_records(tmp_path / "run", header, []))
    text = render(run, score_run(run))
    assert 'id="calculator"' not in text
    assert "Goodput: a measured checkpoint save" in text
    assert json.dumps("NaN") not in text
