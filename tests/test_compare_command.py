"""`hwlottery compare`: what it prints, writes, and ends with."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from compared_clusters import Cluster, written_run
from test_page_safety import HOSTILE, Outline

from hwlottery.cli import cli


def compare(*arguments: object) -> Result:
    return CliRunner().invoke(cli, ["compare", *map(str, arguments)], env={"COLUMNS": "100"})


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two clusters, one of them run twice; one slower and cheaper; one on CPUs."""
    folder = tmp_path_factory.mktemp("runs")
    for seed in (1, 2):
        written_run(folder / f"c{seed}", Cluster(seed=seed, nodes=2, devices=2))
    slow = Cluster(seed=3, nodes=2, devices=2)
    written_run(folder / "slow", slow, slower={"training": 0.8}, facts={"software.torch": "2.9.0"})
    written_run(folder / "cpu", Cluster(seed=4, nodes=1, devices=2), device="cpu", policy="smoke")
    return folder


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("history")
    for run in (1, 2):
        written_run(folder / f"week{run}", Cluster(seed=1, nodes=2, devices=2), run=run)
    (folder / "no-run").mkdir()
    torn = folder / "torn"
    torn.mkdir()
    (torn / "run.json").write_text("{")
    return folder


def test_it_prints_the_order_the_figures_and_what_may_explain_them(runs: Path) -> None:
    result = compare(runs / "c1", runs / "c2", runs / "slow")
    assert result.exit_code == 0
    assert "By cost of a useful PFLOP-day: " in result.output
    assert "cannot be told apart" in result.output
    assert "may explain: torch: 2.13.0 | 2.13.0 | 2.9.0" in result.output
    assert "hold together with 98 %" in " ".join(result.output.split())


@pytest.mark.parametrize("priced", [2, 10])
def test_ten_runs_can_be_read_on_a_terminal_of_80_columns(tmp_path: Path, priced: int) -> None:
    places = [tmp_path / f"c{seed}" for seed in range(10)]
    for seed, place in enumerate(places):
        written_run(
            place, Cluster(seed=seed, nodes=1, devices=2), header={"price_per_gpu_hour": 2.5 if seed < priced else None}
        )
    document = json.loads(compare(*places, "--json").stdout)
    lines = CliRunner().invoke(cli, ["compare", *map(str, places)], env={"COLUMNS": "80"}).output.splitlines()
    assert max(map(len, lines)) <= 80
    for one in document["metrics"]:
        assert any(line.startswith(f"{one['title']} (") for line in lines)
        for each in one["standings"]:
            if each["value"] is None:
                assert any(each["why_not"][:20] in line for line in lines)
    words = " ".join(" ".join(lines).split())
    for whole in ("Matrix products under load", "TFLOPS", "GB/s"):
        assert whole in words
    assert sum(line.count("TFLOPS") for line in lines) >= 20
    assert "USD_PER_GPU_HOUR" in words or priced == 10


def test_one_json_document_on_stdout_and_the_rest_on_stderr(runs: Path) -> None:
    result = compare(runs / "c1", runs / "slow", "--json")
    document = json.loads(result.stdout)
    assert document["format"] == 1
    assert [run["letter"] for run in document["runs"]] == ["A", "B"]
    training = next(one for one in document["metrics"] if one["key"] == "training")
    assert training["contrasts"][0]["better"] == "A"
    assert training["contrasts"][0]["may_explain"] == ["torch"]
    assert "By cost" in result.stderr


def test_where_nothing_can_be_compared_it_ends_with_4_and_says_what_forbids_it(runs: Path) -> None:
    result = compare(runs / "c1", runs / "cpu")
    assert result.exit_code == 4
    assert "Nothing of these runs can be compared" in result.output
    assert "forbids: device: GPUs | CPUs" in result.output


@pytest.mark.parametrize(
    ("names", "words"),
    [(("c1",), "1 run: two to 10 can be compared"), (("c1", "c2", "c1"), "are the same run")],
)
def test_what_the_user_can_mend_is_one_line_and_2(runs: Path, names: tuple[str, ...], words: str) -> None:
    result = compare(*(runs / name for name in names))
    assert result.exit_code == 2
    assert words in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1


def test_a_folder_that_is_no_run_is_one_line_and_2(runs: Path, tmp_path: Path) -> None:
    result = compare(runs / "c1", tmp_path)
    assert result.exit_code == 2
    assert len(result.stderr.strip().splitlines()) == 1


def test_history_is_read_from_a_folder_and_what_is_no_run_is_left_out(runs: Path, history: Path) -> None:
    result = compare(runs / "c1", runs / "c2", "--history", history, "--json")
    assert result.exit_code == 0
    document = json.loads(result.stdout)
    assert document["history"] == 2
    assert "moderated by 2 repeated runs" in document["metrics"][0]["basis"]
    assert "left out of the history" in result.stderr
    assert "torn" in result.stderr


def test_the_page_holds_every_run_and_runs_no_script(runs: Path, tmp_path: Path) -> None:
    place = tmp_path / "page.html"
    assert compare(runs / "c1", runs / "c2", runs / "slow", "-o", place).exit_code == 0
    outline = Outline(place.read_text(encoding="utf-8"))
    assert outline.all("script") == []
    for seed in (1, 2, 3):
        assert f"Provider {seed} fra-2" in outline.text
    assert "A bracket joins runs that cannot be told apart" in outline.text
    assert "default 1 % (microsoft/superbenchmark)" in outline.text


def test_hostile_names_stay_text_on_page_and_terminal(runs: Path, tmp_path: Path) -> None:
    odd = Cluster(seed=7, nodes=2, devices=2)
    names = {"provider": HOSTILE, "cluster": f"{HOSTILE}\n[red]x[/red]\x1b[31m"}
    written_run(
        tmp_path / "odd", odd, header=names, facts={"software.torch": HOSTILE, "accelerator.name": HOSTILE}
    )  # fmt: skip
    place = tmp_path / "page.html"
    result = compare(runs / "c1", tmp_path / "odd", "-o", place)
    assert result.exit_code in (0, 4)
    assert "\x1b" not in result.output
    page = place.read_text(encoding="utf-8")
    outline = Outline(page)
    assert outline.all("img") == []
    assert outline.all("script") == []
    assert len(outline.all("style")) == 1
    assert not [a for _, a in outline.elements if any(name.startswith("on") for name in a)]
    assert HOSTILE.removesuffix("\x07")[:30] in outline.text, "the words are still there to be read"
    assert "\x07" not in page


def test_the_record_beside_a_run_stands_beside_it_and_a_bad_one_is_one_line(runs: Path, tmp_path: Path) -> None:
    here = written_run(tmp_path / "run", Cluster(seed=8, nodes=2, devices=2))
    record = here / "provider.yaml"
    record.write_text("promised: {date: 2026-11-20, nodes: 2}\ndelivered: [{date: 2026-11-25, nodes: 2}]\n")
    place = tmp_path / "page.html"
    result = compare(runs / "c1", here, "-o", place)
    assert result.exit_code == 0
    assert "Delivery and support: 1 of 2 promises broken" in " ".join(result.output.split())
    assert "1 of 2 promises broken" in Outline(place.read_text(encoding="utf-8")).text
    record.write_text("promised: {dates: 2026-11-20}\n")
    result = compare(runs / "c1", here)
    assert result.exit_code == 2
    assert "dates" in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
