"""--references: the user's own file judges, travels with a run by its hash, and can do no harm."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from generated_runs import write_run

from hwlottery.cli import cli

OWN = """
sources: {US: {name: ours, at: spring, date: 2026-04-01}}
accelerators:
  - key: h100-sxm-80
    names: [NVIDIA H100 80GB HBM3]
    values: [{metric: memory.copy, kind: peak, value: 9000, source: US}]
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A healthy run of one node, judged by one check of a reference."""
    check = (
        "{check: m, metric: memory.copy, each: accelerator, category: memory, statement: x,"
        " layers: {reference: {of: peak, fail: 0.7}}}"
    )
    whole = "{check: whole, rule: evidence.complete, each: cluster, category: evidence}"
    text = f"name: mine\nsignable: false\nchecks: [{whole}, {check}]\n"
    return write_run(tmp_path_factory.mktemp("own") / "run", nodes=1, accelerators=2, policy_text=text)


def answer(*arguments: object) -> tuple[int, str]:
    result = CliRunner().invoke(cli, [str(argument) for argument in arguments])
    return result.exit_code, result.output


def test_score_judges_by_the_users_file_and_says_so_by_its_hash(run: Path, tmp_path: Path) -> None:
    own = tmp_path / "ours.yaml"
    own.write_text(OWN)
    code, _ = answer("score", run)
    assert code == 0
    kept = (run / "verdict.json").read_bytes()
    assert json.loads(kept)["references"] is None
    result = CliRunner().invoke(cli, ["score", str(run), "--references", str(own), "--json"])
    assert result.exit_code == 3
    verdict = json.loads(result.stdout)
    assert verdict["references"]["name"] == "ours.yaml"
    assert len(verdict["references"]["sha256"]) == 64
    assert "of the peak 9,000 GB/s (ours)" in verdict["findings"][1]["expected"]
    assert (run / "verdict.json").read_bytes() == kept, "it is no judgement of the run by its own documents"
    code, _ = answer("report", run, "--references", own, "-o", tmp_path / "page.html")
    assert code == 0
    page = (tmp_path / "page.html").read_text()
    assert "9,000" in page
    assert f"with references of ours.yaml (<code>{verdict['references']['sha256'][:12]}" in page


def test_explain_shows_a_users_reference_and_a_fabric_of_ours(tmp_path: Path) -> None:
    own = tmp_path / "ours.yaml"
    own.write_text(OWN)
    code, told = answer("explain", "h100-sxm-80", "--references", own)
    assert code == 0
    assert "9,000 GB/s" in told
    code, told = answer("explain", "efa-32x100")
    assert code == 0
    assert "32 x 100 Gbit/s EFA, AWS p5 and p5e: 400 GB/s a node" in told
    assert "floor 300 GB/s [AICR]" in " ".join(told.split())
    code, told = answer("explain", "h100-sxm-80")
    assert "MLE: stas00/ml-engineering 744d01e, compute/accelerator/README.md" in " ".join(told.split())


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "accelerators: [{key: a, name: [A], values: []}]",
            "accelerators.0.name: unknown key, did you mean names? (choices: key, values",
        ),
        (OWN.replace("US}]", "WE}]"), "source 'WE' is not listed (choices: AZ, DCGM, DGXC,"),
        ("!!python/object/apply:os.system ['touch harm']", "line 1: tags (!name) are not allowed"),
        ("x: " + "y" * 300_000, "over 256 KiB"),
    ],
)
def test_a_file_that_is_wrong_or_hostile_is_one_line_and_exit_code_2(
    run: Path, tmp_path: Path, text: str, told: str
) -> None:  # fmt: skip
    own = tmp_path / "ours.yaml"
    own.write_text(text)
    for command in (("score", run), ("report", run), ("explain", "h100-sxm-80"), ("run", "--out", tmp_path / "r")):
        code, said = answer(*command, "--references", own)
        assert code == 2
        assert said.startswith("hwlottery: ")
        assert "ours.yaml: " in said
        assert told in said
        assert len(said.strip().splitlines()) == 1
    assert not (tmp_path / "r").exists()
