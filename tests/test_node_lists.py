"""Lists for schedulers and launchers: what to leave out is always told, where to run only by a verdict that says so."""

from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner
from generated_runs import make_run, write_records, write_run

from hwlottery.cli import cli
from hwlottery.evidence import Run, read_run
from hwlottery.reports.node_lists import NoNodeList, exclude, hostfile
from hwlottery.scoring import score_run
from hwlottery.scoring.verdict import Verdict


def judged(place: Path, *faults: str, **wanted: object) -> tuple[Run, Verdict]:
    run = read_run(write_run(place / "run", **{"nodes": 12, "accelerators": 2, "faults": faults, **wanted}))
    return run, score_run(run)


def test_a_conditional_run_gives_both_lists(tmp_path: Path) -> None:
    run, verdict = judged(tmp_path, "slow@n10/gpu1=0.7")
    assert verdict.verdict == "CONDITIONAL"
    assert exclude(run, verdict).text == "n10\n"
    kept = [f"n{index:02d} slots=2" for index in range(12) if index != 10]
    assert hostfile(run, verdict).text.splitlines() == kept


def test_a_go_excludes_nobody_and_keeps_everybody(tmp_path: Path) -> None:
    run, verdict = judged(tmp_path)
    assert verdict.verdict == "GO"
    assert exclude(run, verdict).text == "\n"
    assert len(hostfile(run, verdict).text.splitlines()) == 12


@pytest.mark.parametrize(
    ("fault", "word", "code"), [("loss_rises@cluster", "NO_GO", 3), ("unfinished@cluster", "INCONCLUSIVE", 4)]
)
def test_no_hostfile_comes_from_a_verdict_that_does_not_say_run_here(
    tmp_path: Path, fault: str, word: str, code: int
) -> None:
    run, verdict = judged(tmp_path, fault, "slow@n10/gpu1=0.7")
    assert verdict.verdict == word
    with pytest.raises(NoNodeList, match="no hostfile: the verdict is"):
        hostfile(run, verdict)
    result = CliRunner().invoke(cli, ["export", str(run.path), "--format", "hostfile"])
    assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (code, "", 1)
    told = CliRunner().invoke(cli, ["export", str(run.path), "--format", "exclude"])
    assert (told.exit_code, told.stdout) == (0, "n10\n")
    assert "not shown to be fit" in told.stderr


def test_of_slow_pairs_the_node_that_most_of_them_share_is_left_out(tmp_path: Path) -> None:
    run, verdict = judged(tmp_path)
    for pairs, out in (
        (("n01~n02",), "n02"),
        (("n01~n02", "n01~n03", "n01~n04"), "n01"),
        (("n01~n02", "n02", "n05/gpu1"), "n02,n05"),
    ):
        wanted = msgspec.structs.replace(verdict, verdict="CONDITIONAL", exclude=pairs)
        listed = exclude(run, wanted).text.strip()
        assert listed == out if "/gpu" not in "".join(pairs) else listed == "n02,n05"
        assert "left out with their whole node" in " ".join(exclude(run, wanted).notes)


@pytest.mark.parametrize("name", ["n1,n2", "n1 --uid=root", "n1\nn2", "--all", "n1;reboot", "$(x)"])
def test_a_name_that_would_be_more_than_a_name_gives_no_list(tmp_path: Path, name: str) -> None:
    header, records = make_run(nodes=2, accelerators=1)
    odd = msgspec.structs.replace(header.promised[0], node=name)
    header = msgspec.structs.replace(header, promised=(odd, *header.promised[1:]))
    run = read_run(write_records(tmp_path / "run", header, records))
    verdict = msgspec.structs.replace(score_run(run), verdict="GO", exclude=())
    for made in (exclude, hostfile):
        with pytest.raises(NoNodeList, match="cannot be a node's name"):
            made(run, verdict)


def test_an_unsigned_go_says_so_beside_its_hostfile(tmp_path: Path) -> None:
    run, verdict = judged(tmp_path, simulated=True)
    assert any("not for signing" in note for note in hostfile(run, verdict).notes)
