"""A checkpoint that was left behind is found as it was left, or what happened to it is told."""

import shutil
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from hwlottery.cluster import Cluster, Node, Rank, RankContext
from hwlottery.evidence import AnyReading, Keep, LeftCheckpoint, Missing, Noticed, Observed, Reading, read_run
from hwlottery.probes import Retention
from hwlottery.probes.retention import RetentionSettings, look_and_leave
from hwlottery.scoring import score_run

CONTEXT = RankContext(subject="n01/slot0", node="n01", device_name="cpu")


def looked(place: Path, earlier: LeftCheckpoint | None = None) -> list[AnyReading]:
    told = msgspec.json.encode(earlier).decode() if earlier else ""
    return look_and_leave(CONTEXT, {"directory": str(place), "earlier": told, "files": 3, "bytes_per_file": 2**20 + 5})


def left_in(found: list[AnyReading]) -> LeftCheckpoint:
    (told,) = (one.value for one in found if isinstance(one, Observed))
    return msgspec.json.decode(str(told), type=LeftCheckpoint)


def numbers(found: list[AnyReading]) -> dict[str, float]:
    return {one.metric: one.samples[0] for one in found if isinstance(one, Reading)}


@pytest.fixture
def left(tmp_path: Path) -> LeftCheckpoint:
    return left_in(looked(tmp_path))


def test_what_was_left_is_found_as_it_was_and_nothing_more_is_left(tmp_path: Path, left: LeftCheckpoint) -> None:
    assert [file.size for file in left.files] == [2**20 + 5] * 3
    found = looked(tmp_path, left)
    assert (numbers(found)["retention.gone"], numbers(found)["retention.altered"]) == (0, 0)
    assert numbers(found)["retention.age"] > 0
    assert left_in(found) == left, "the next run looks for the same one"
    assert [entry.name for entry in tmp_path.iterdir()] == [left.folder]


def test_a_flipped_byte_is_altered_even_where_size_and_time_are_as_before(
    tmp_path: Path, left: LeftCheckpoint
) -> None:  # fmt: skip
    import os

    file = tmp_path / left.folder / "part-1.bin"
    content = bytearray(file.read_bytes())
    content[7] ^= 1
    file.write_bytes(content)
    os.utime(file, ns=(left.files[1].mtime_ns, left.files[1].mtime_ns))
    found = looked(tmp_path, left)
    assert (numbers(found)["retention.gone"], numbers(found)["retention.altered"]) == (0, 1)
    assert file.read_bytes() == content, "what was left is never touched"
    assert left_in(found).folder != left.folder, "another one is left for the next run"


def test_what_was_deleted_is_gone_and_is_named_with_its_date_and_place(tmp_path: Path, left: LeftCheckpoint) -> None:
    shutil.rmtree(tmp_path / left.folder)
    found = looked(tmp_path, left)
    assert numbers(found)["retention.gone"] == 3
    (said,) = (one.detail for one in found if isinstance(one, Noticed))
    assert said == f"the checkpoint left on {left.time:%Y-%m-%d} at {tmp_path}/{left.folder} is gone"


@pytest.mark.parametrize("what", ["folder", "file"])
def test_a_link_in_its_place_is_not_followed(tmp_path: Path, left: LeftCheckpoint, what: str) -> None:
    place = tmp_path / left.folder if what == "folder" else tmp_path / left.folder / "part-0.bin"
    place.rename(tmp_path / "elsewhere")
    place.symlink_to(tmp_path / "elsewhere")
    assert numbers(looked(tmp_path, left))["retention.gone"] == (3 if what == "folder" else 1)


def test_what_cannot_be_looked_at_is_not_measured(
    tmp_path: Path, left: LeftCheckpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("hwlottery.probes.retention.os.open", refuse)
    found = looked(tmp_path, left)
    assert {one.metric for one in found if isinstance(one, Missing)} == set(Retention.metrics)


def test_where_nothing_can_be_left_it_is_said(tmp_path: Path) -> None:
    (said,) = looked(tmp_path / "absent")
    assert isinstance(said, Noticed)
    assert "no checkpoint was left" in said.detail


def test_nothing_is_planned_unless_a_place_was_named(tmp_path: Path, left: LeftCheckpoint) -> None:
    rank = Rank(subject="n01/slot0", node="n01", index=0, device="cpu")
    cluster = Cluster(nodes=(Node(name="n01", ranks=(rank,), scratch=str(tmp_path)),), device="cpu")
    assert list(Retention().plan(cluster, RetentionSettings(), 0)) == []
    for earlier, fills in ((None, 0), (left, 3)):
        kept = msgspec.structs.replace(cluster, keep=Keep(directory=str(tmp_path), earlier=earlier))
        ((trial,),) = Retention().plan(kept, RetentionSettings(), 0)
        assert len(trial.fills) == fills
        assert {fill.params.get("path") for fill in trial.fills} <= {f"{tmp_path}/{left.folder}"}


# --- the whole way ------------------------------------------------------------------------------------------------

PROFILE = """name: keeps
summary: A checkpoint alone, for tests.
slots: 1
probes:
  inventory:
    cpu: {watch_s: 0.1}
  retention:
    cpu: {mib_per_file: 1, files: 2}
"""


def hwlottery(*arguments: object, cwd: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "hwlottery", *map(str, arguments)],
        capture_output=True, text=True, cwd=cwd, timeout=150, check=False,
    )  # fmt: skip


def results(run: Path) -> dict[str, str]:
    return {f.check: f.result for f in score_run(read_run(run)).findings if f.check.startswith("retention")}


@pytest.mark.slow
def test_a_recheck_finds_what_the_run_before_left_and_tells_when_it_is_altered(tmp_path: Path) -> None:
    (tmp_path / "keeps.yaml").write_text(PROFILE)
    (tmp_path / "kept").mkdir()
    given = ("--profile", "keeps.yaml", "--policy", "smoke", "--keep-checkpoint", "kept")
    hwlottery("run", *given, "--out", "first", cwd=tmp_path)
    assert results(tmp_path / "first") == {}, "with nothing left before there is nothing to judge"
    (folder,) = (tmp_path / "kept").iterdir()

    hwlottery("recheck", "--baseline", "first", "--out", "second", cwd=tmp_path)
    assert results(tmp_path / "second") == {"retention.gone": "pass", "retention.altered": "pass"}
    assert list((tmp_path / "kept").iterdir()) == [folder]

    (folder / "part-0.bin").write_bytes(b"other")
    (folder / "part-1.bin").unlink()
    third = hwlottery("recheck", "--baseline", "second", "--out", "third", cwd=tmp_path)
    assert third.returncode == 3, third.stderr
    assert results(tmp_path / "third") == {"retention.gone": "fail", "retention.altered": "fail"}
    assert read_run(tmp_path / "third").problems == []
