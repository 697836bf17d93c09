"""What a history writes for others to read: a page in a real browser, Prometheus text, JUnit XML."""

import shutil
import stat
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from datetime import timedelta
from importlib import resources
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner
from generated_runs import write_run
from prometheus_client.parser import text_string_to_metric_families
from test_browser import DESK, PHONE, browser, open_page, page_settles, written
from test_history import NOW, judged, past, seen, weeks
from test_page_safety import HOSTILE, Outline

from hwlottery.cli import cli
from hwlottery.reports import history_junit, history_prometheus, prometheus
from hwlottery.reports.history_page import render_history
from hwlottery.scoring.history import ClusterHistory, History, Skipped
from hwlottery.scoring.past_runs import Middle, PastRun, Seen

__all__ = ["browser", "open_page", "weeks"]  # fixtures
SLOW, FAST = 500.0, 700.0


def rated(value: float, **params: Any) -> tuple[Middle, ...]:
    return (Middle(metric="matmul.tflops", params={"dtype": "bf16", **params}, value=value, subjects=8),)


def with_driver(one: Seen, version: str) -> Seen:
    return msgspec.structs.replace(one, settings=(("driver", version),))


def pair(*names: str, failed: Sequence[str] = (), driver: str = "570") -> list[Seen]:
    others = {name: [f"hw-{other}" for other in names if other != name] for name in names}
    return [
        with_driver(seen(name, partners=others[name], failed=["a"] if name in failed else ()), driver) for name in names
    ]


def a_rental() -> History:
    """Four runs of three nodes: one that keeps failing, one not measured for long, a new driver, and speed lost."""
    return judged(
        past(22, *pair("n01", "n02", "n03"), middles=rated(FAST), node_days=3.0),
        past(15, *pair("n01", "n02", "n03", failed=["n02"]), middles=rated(FAST + 1), node_days=3.0),
        past(
            8, *pair("n01", "n02", failed=["n02"], driver="575"), middles=rated(FAST - 1), failures=1, node_days=300.0
        ),
        past(1, *pair("n01", "n02", driver="575"), middles=rated(SLOW), node_days=3.0),
        skipped=(Skipped(path=HOSTILE, why=HOSTILE),),
    )


def cluster_of(history: History) -> ClusterHistory:
    (cluster,) = history.clusters
    return cluster


# --- what changed -------------------------------------------------------------------------------------------------


def test_what_changed_is_told_of_each_machine_against_itself() -> None:
    (change,) = cluster_of(a_rental()).changes
    assert (change.kind, change.what, change.nodes) == ("software", "driver 570 → 575", ("n01", "n02"))
    assert change.run_id == "run-8"


def test_a_node_of_another_driver_that_took_no_part_before_is_no_change() -> None:
    runs = [past(9, *pair("n01", "n02")), past(2, *pair("n03", "n04", driver="575"))]
    assert cluster_of(judged(*runs)).changes == ()


def test_another_machine_behind_a_name_is_a_change_of_hardware() -> None:
    (change,) = cluster_of(judged(past(9, seen("n01", "x")), past(2, seen("n01", "y")))).changes
    assert (change.kind, change.nodes) == ("hardware", ("n01",))


def test_a_machine_that_is_not_known_is_no_other_machine() -> None:
    runs = [past(9, seen("n01", "x")), past(5, seen("n01", "named n01")), past(2, seen("n01", "x"))]
    assert cluster_of(judged(*runs)).changes == ()


def test_settings_that_differ_everywhere_are_counted_and_not_listed_without_end() -> None:
    def run(days: float, word: str) -> PastRun:
        many = tuple((f"s{n:04d}", word) for n in range(500))
        return past(days, msgspec.structs.replace(seen("n01"), settings=many))

    changes = cluster_of(judged(run(3, "a"), run(2, "b"))).changes
    assert len(changes) == 41
    assert changes[-1].what == "and 460 more settings"


def test_figures_of_the_whole_cluster_are_not_held_against_those_of_fewer_nodes() -> None:
    runs = [past(9 - n, seen("n01"), middles=rated(value, nodes=nodes)) for n, (value, nodes) in
            enumerate([(FAST, 8), (FAST, 8), (FAST, 8), (SLOW, 6), (SLOW + 1, 6)])]  # fmt: skip
    (series,) = cluster_of(judged(*runs)).series
    assert [point.value for point in series.points] == [SLOW, SLOW + 1]
    assert series.worse_by is not None
    assert series.worse_by < 0.05


def test_the_ledger_is_the_sum_of_its_lines() -> None:
    ledger = cluster_of(a_rental()).ledger
    assert len(ledger.lines) == 4
    for name in ("paid", "delivered", "healthy", "usd", "usd_unhealthy"):
        assert getattr(ledger, name) == pytest.approx(sum(getattr(line, name) for line in ledger.lines))
    assert ledger.lines[0].until == ledger.lines[1].since
    assert ledger.lines[-1].until == NOW


# --- Prometheus ---------------------------------------------------------------------------------------------------


def samples(text: str) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    families = list(text_string_to_metric_families(text))
    assert all(family.documentation and family.type == "gauge" for family in families)
    every = [one for family in families for one in family.samples]
    found = {(one.name.removeprefix("hwlottery_history_"), frozenset(one.labels.items())): one.value for one in every}
    assert len(found) == len(every), "a series stands once, or the collector fails"
    assert all(one.timestamp is None for one in every), "the collector leaves out files with times"
    return found


def test_prometheus_has_coverage_failures_and_money() -> None:
    found = samples(history_prometheus.render(a_rental()))
    cluster = ("cluster", "P fra-2")
    assert found["exit_code", frozenset()] == 3
    assert found["node_covered", frozenset({cluster, ("node", "n03")})] == 0
    assert found["node_covered", frozenset({cluster, ("node", "n01")})] == 1
    assert found["machines_failing_here", frozenset({cluster})] == 1
    assert found["failures_per_node_day_high", frozenset({cluster})] == pytest.approx(4.744 / 309, rel=1e-3)
    assert found["node_hours", frozenset({cluster, ("state", "paid")})] == 22 * 24 * 3
    failed = frozenset({cluster, ("node", "n02"), ("machine", "hw-n02")})
    assert found["machine_failed_runs", failed] == 2


def test_what_is_not_known_has_no_sample() -> None:
    never = msgspec.structs.replace(seen("n01"), measured=False)
    found = samples(history_prometheus.render(judged(past(1, never, price_per_gpu_hour=None, node_days=0.0))))
    names = {name for name, _ in found}
    assert not names & {"node_measured_timestamp_seconds", "usd", "failures_per_node_day_high"}
    assert "node_covered" in names


def test_clusters_and_machines_that_read_alike_stay_two_series() -> None:
    runs = [past(1, seen("n01"), cluster="a\u200bb"), past(2, seen("n01"), cluster="a\u2060b", run_id="other")]
    found = samples(history_prometheus.render(judged(*runs)))
    assert len([name for name, _ in found if name == "runs"]) == 2


def test_no_series_is_one_of_a_run_which_lies_beside_it(tmp_path: Path) -> None:
    from hwlottery.evidence import read_run
    from hwlottery.scoring import score_run

    run = read_run(write_run(tmp_path / "run", nodes=2, accelerators=1))
    of_run = {family.name for family in text_string_to_metric_families(prometheus.render(run, score_run(run)))}
    of_history = {family.name for family in text_string_to_metric_families(history_prometheus.render(a_rental()))}
    assert not of_run & of_history


# --- JUnit --------------------------------------------------------------------------------------------------------


def test_junit_fails_for_what_keeps_failing_and_errs_for_what_is_not_covered() -> None:
    root = ET.fromstring(history_junit.render(a_rental()))
    assert (root.get("failures"), root.get("errors")) == ("2", "1")
    (error,) = root.iter("error")
    assert error.get("message") == "not covered: last measured 2026-11-13"


def test_a_folder_without_runs_does_not_look_green() -> None:
    root = ET.fromstring(history_junit.render(judged()))
    assert (root.get("tests"), root.get("errors")) == ("1", "1")


# --- the command --------------------------------------------------------------------------------------------------


def test_all_three_are_written_whole_and_readable_by_others(weeks: Path, tmp_path: Path) -> None:
    for name in ("h.prom", "h.xml", "h.html"):
        (tmp_path / name).write_text("old")
    given = ["--prometheus", tmp_path / "h.prom", "--junit", tmp_path / "h.xml", "-o", tmp_path / "h.html"]
    result = CliRunner().invoke(cli, ["history", str(weeks), "--at", "2026-11-28", "--quiet", *map(str, given)])
    assert (result.exit_code, result.output) == (3, "")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["h.html", "h.prom", "h.xml"]
    assert all(stat.S_IMODE(entry.stat().st_mode) == 0o644 for entry in tmp_path.iterdir())
    assert samples((tmp_path / "h.prom").read_text())["skipped", frozenset()] == 2
    ET.fromstring((tmp_path / "h.xml").read_text())
    assert "n03" in Outline((tmp_path / "h.html").read_text()).text


def test_a_link_in_the_folder_of_runs_is_replaced_and_not_followed(weeks: Path, tmp_path: Path) -> None:
    folder = tmp_path / "runs"
    folder.mkdir()
    shutil.copytree(weeks / "week-0", folder / "week-0")
    (folder / "history.html").symlink_to(tmp_path / "elsewhere")
    CliRunner().invoke(cli, ["history", str(folder), "--at", "2026-11-28", "-o", str(folder / "history.html")])
    assert not (tmp_path / "elsewhere").exists()
    assert (folder / "history.html").read_text().startswith("<!doctype html>")


# --- the page -----------------------------------------------------------------------------------------------------


def hostile_history() -> History:
    """Markup wherever a word of a run can stand."""
    other = msgspec.structs.replace(seen(HOSTILE, HOSTILE, failed=[HOSTILE]), settings=((HOSTILE, HOSTILE),))
    changed = msgspec.structs.replace(other, settings=((HOSTILE, HOSTILE + "2"),))
    words = {"cluster": HOSTILE, "middles": rated(1.0, word=HOSTILE)}
    runs = [past(9, other, **words, path=f"/{HOSTILE}"), past(2, changed, **words, path=f"/{HOSTILE}")]
    return judged(*runs, skipped=(Skipped(path=HOSTILE, why=HOSTILE),))


def many_nodes() -> History:
    names = [f"n{n:03d}" for n in range(512)]
    return judged(*(past(30 - 7 * n, *map(seen, names), middles=rated(FAST - n)) for n in range(5)))


HISTORIES = {
    "rental": a_rental,
    "hostile": hostile_history,
    "many": many_nodes,
    "nothing": judged,
    "one run": lambda: judged(past(1, seen("n01"))),
    "two clusters": lambda: judged(past(1, seen("n01")), past(2, seen("n01"), cluster="Q")),
}


@pytest.mark.parametrize("name", HISTORIES)
def test_the_page_stays_text_whatever_the_runs_hold(name: str) -> None:
    page = Outline(render_history(HISTORIES[name](), "0"))
    tags = {tag for tag, _ in page.elements}
    assert not tags & {"script", "img", "iframe", "object", "form", "input"}
    assert not [one for _, attributes in page.elements for one in attributes if one.startswith("on") or one == "style"]
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))


def test_the_page_says_who_is_not_covered_who_keeps_failing_and_what_changed() -> None:
    text = Outline(render_history(a_rental(), "0")).text
    for words in (
        "1 of 3 nodes is not covered within 7 days. 1 machine that fails again and again is still here: n02.",
        "n03: last measured 2026-11-13", "Keeps failing: n02, in 2 of 4 runs", "driver 570 → 575",
        "matmul.tflops (bf16): 700 TFLOPS → 500 TFLOPS, -28.6 %, worse than before",
        "1 of 1 metric is worse in the last run", "Failures: 1 in 309 node-days", "1,584 paid",
    ):  # fmt: skip
        assert words in text, words


def test_a_page_of_512_nodes_names_the_rows_it_leaves_out_and_stays_small() -> None:
    page = render_history(many_nodes(), "0")
    assert "472 more nodes, of which 472 not covered" in page
    assert len(page) < 1_500_000


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return {
        name: written(tmp_path_factory.mktemp("history"), render_history(made(), "0"))
        for name, made in HISTORIES.items()
    }


def opened(page: Any) -> None:
    page.evaluate("document.querySelectorAll('details').forEach((each) => (each.open = true))")


@pytest.mark.browser
@pytest.mark.parametrize("name", HISTORIES)
def test_it_says_nothing_and_asks_for_nothing(name: str, open_page: Any, pages: dict[str, Path]) -> None:
    watched = open_page(pages[name])
    opened(watched.page)
    page_settles(watched.page)
    assert watched.said == []
    assert watched.asked == [pages[name].as_uri()]
    assert watched.page.evaluate("document.scripts.length") == 0


@pytest.mark.browser
@pytest.mark.parametrize("name", HISTORIES)
@pytest.mark.parametrize("viewport", [PHONE, {"width": 390, "height": 844}, DESK])
def test_no_sideways_scrolling(name: str, viewport: dict[str, int], open_page: Any, pages: dict[str, Path]) -> None:
    page = open_page(pages[name], viewport=viewport).page
    opened(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= viewport["width"]


@pytest.mark.browser
def test_on_a_phone_the_picture_begins_with_the_days_that_count_and_the_names(
    open_page: Any, pages: dict[str, Path]
) -> None:
    page = open_page(pages["rental"], viewport={"width": 390, "height": 844}).page
    name = page.locator(".coverage svg text", has_text="n03: last measured").bounding_box()
    assert name is not None
    assert name["x"] + name["width"] <= 390
    assert name["x"] > 0


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["rental", "many", "two clusters"])
def test_accessibility_rules_hold(name: str, scheme: str, open_page: Any, pages: dict[str, Path]) -> None:
    page = open_page(pages[name], color_scheme=scheme, bypass_csp=True).page
    opened(page)
    page.evaluate(resources.files("axe_core_python").joinpath("axe.min.js").read_text(encoding="utf-8"))
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    grave = [each for each in found["violations"] if each["impact"] in ("serious", "critical")]
    assert [(each["id"], [node["html"][:200] for node in each["nodes"]][:3]) for each in grave] == []


@pytest.mark.browser
def test_it_prints(open_page: Any, pages: dict[str, Path]) -> None:
    page = open_page(pages["rental"], viewport={"width": 718, "height": 1040}).page
    assert page.pdf(format="A4", prefer_css_page_size=True).startswith(b"%PDF")
    page.emulate_media(media="print")
    wide = "[...document.querySelectorAll('table, svg')].filter((t) => t.getBoundingClientRect().right > 720).length"
    assert page.evaluate(wide) == 0


def test_times_far_away_draw_nothing_that_overflows() -> None:
    far = past(1, seen("n01"), middles=rated(1.0), started=NOW - timedelta(days=300_000))
    render_history(judged(far, past(1, seen("n01"), middles=rated(2.0), run_id="b")), "0")
