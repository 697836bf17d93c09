"""checkpoint: the parts of a save are told apart, damage is found, refusals are said, and nothing is left behind."""

import dataclasses
import os
import resource
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from hwlottery.cluster import Trial
from hwlottery.evidence import AnyReading, Missing, Observed, Reading
from hwlottery.probes import shards, timed_writer
from hwlottery.probes.by_hand import call, gang, group_of_one, one_node, trials_of, values_of
from hwlottery.probes.checkpoint import Checkpoint, CheckpointSettings
from hwlottery.probes.page_cache import cached_share, drop_cached, read_from

SMALL = CheckpointSettings(mib_per_rank=4, tensor_mib=2, saves=2)


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[None]:
    """This process as the only rank of a collective trial."""
    (tmp_path / "group").mkdir()
    with group_of_one("cpu", str(tmp_path / "group")):
        yield


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    """A directory to save in."""
    (tmp_path / "scratch").mkdir()
    return tmp_path / "scratch"


def _trial(scratch: object, ranks: int = 1) -> Trial:
    return next(trials_of(Checkpoint(), one_node("cpu", ranks, str(scratch)), SMALL))


def _samples(readings: list[AnyReading]) -> dict[str, tuple[float, ...]]:
    return {each.metric.removeprefix("checkpoint."): each.samples for each in readings if isinstance(each, Reading)}


def test_two_ranks_bring_exactly_what_was_announced_and_leave_nothing(scratch: Path) -> None:
    trial = _trial(scratch, ranks=2)
    (readings,) = gang([trial], [rank.subject for rank in trial.ranks], str(scratch))
    assert values_of(readings) == values_of(trial.fills)
    found = _samples(readings)
    assert found["hash_mismatches"] == (0.0, 0.0)
    assert all(value > 0 for part in ("save", "stage", "write", "sync", "commit") for value in found[part])
    parts = [sum(each) for each in zip(*(found[part] for part in ("write", "sync", "commit")), strict=True)]
    assert all(part < whole * 2 for part, whole in zip(parts, found["save"], strict=True))
    assert found["write_rate"] == pytest.approx(tuple(8 * 2**20 / save_s / 1e9 for save_s in found["save"]))
    assert list(scratch.iterdir()) == []


@pytest.mark.usefixtures("alone")
def test_a_slow_fsync_is_in_sync_and_save_but_not_in_write(scratch: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fsync = os.fsync

    def slow(descriptor: int) -> None:
        time.sleep(0.15)
        fsync(descriptor)

    monkeypatch.setattr(timed_writer.os, "fsync", slow)
    found = _samples(call(_trial(scratch), "here/slot0", str(scratch)))
    assert min(found["sync"]) >= 0.15
    assert max(found["sync"]) < 0.29  # one fsync of the data; those of metadata and directory are in commit
    assert min(found["commit"]) >= 0.3
    assert min(found["save"]) >= 0.45
    assert max(found["write"]) < 0.15


@pytest.mark.usefixtures("alone")
def test_a_byte_that_changes_on_disk_is_a_mismatch(scratch: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def damage(folder: Path) -> None:
        data = folder / "__0_0.distcp"
        content = bytearray(data.read_bytes())
        content[len(content) // 4] ^= 1
        data.write_bytes(content)
        drop_cached(folder)

    monkeypatch.setattr(shards, "drop_cached", damage)
    found = _samples(call(_trial(scratch), "here/slot0", str(scratch)))
    assert found["hash_mismatches"] == (1.0, 1.0)


@pytest.mark.usefixtures("alone")
def test_a_directory_that_is_not_there_is_missing_with_its_name(tmp_path: Path) -> None:
    nowhere = tmp_path / "nowhere"
    _all_missing(call(_trial(nowhere), "here/slot0", str(nowhere)), "No such file or directory", str(nowhere))


@pytest.mark.usefixtures("alone")
def test_too_little_space_is_said_before_anything_is_written(scratch: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shards.shutil, "disk_usage", lambda _: _Usage(free=3 << 20))
    _all_missing(call(_trial(scratch), "here/slot0", str(scratch)), "no space left", "8 MiB wanted", "3 MiB free")
    assert list(scratch.iterdir()) == []


@pytest.mark.usefixtures("alone")
def test_what_a_killed_rank_left_long_ago_is_removed_and_what_is_at_work_stays(scratch: Path) -> None:
    for name, age_s in (("old", 7 * 3600), ("new", 60)):
        folder = scratch / f"hwlottery-checkpoint-{name}"
        folder.mkdir()
        os.utime(folder, (time.time() - age_s,) * 2)
    call(_trial(scratch), "here/slot0", str(scratch))
    assert [each.name for each in scratch.iterdir()] == ["hwlottery-checkpoint-new"]


@dataclasses.dataclass
class _Usage:
    free: int


@pytest.mark.usefixtures("alone")
def test_a_write_that_fails_midway_is_missing_and_leaves_nothing(scratch: Path) -> None:
    """A limit on file size makes write() itself fail, as a full disk does."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, before[1]))
    try:
        readings = call(_trial(scratch), "here/slot0", str(scratch))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    _all_missing(readings, "File too large", str(scratch))
    assert list(scratch.iterdir()) == []


def _all_missing(readings: list[AnyReading], *words: str) -> None:
    assert {each.metric for each in readings if isinstance(each, Missing)} == set(Checkpoint.metrics)
    assert len(readings) == len(Checkpoint.metrics)
    for each in readings:
        assert isinstance(each, Missing)
        assert all(word in each.detail for word in words), each.detail


@pytest.mark.usefixtures("alone")
def test_where_the_read_came_from_is_a_fact(scratch: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shards, "drop_cached", lambda _: None)
    readings = call(_trial(scratch), "here/slot0", str(scratch))
    facts = {each.key: each.value for each in readings if isinstance(each, Observed)}
    assert facts == {"checkpoint.read_from": "page cache"}


def test_dropping_the_cache_is_looked_at_not_believed(tmp_path: Path) -> None:
    file = tmp_path / "data"
    with file.open("wb") as opened:
        opened.write(os.urandom(1 << 20))
        opened.flush()
        os.fsync(opened.fileno())
    assert cached_share(file) == 1.0
    assert read_from(tmp_path) == "page cache"
    drop_cached(tmp_path)
    assert read_from(tmp_path) in ("storage", "page cache")  # tmpfs has no storage to read from
    assert read_from(tmp_path) == ("storage" if cached_share(file) == 0 else "page cache")


def test_an_empty_folder_says_nothing_of_the_cache(tmp_path: Path) -> None:
    assert read_from(tmp_path) == "unknown"


def test_shards_of_two_ranks_share_no_name_and_no_content() -> None:
    import torch

    from hwlottery.cluster import RankContext

    ranks = [
        RankContext(subject=f"n/slot{rank}", node="n", device_name="cpu", rank=rank, subjects=("n/slot0", "n/slot1"))
        for rank in range(2)
    ]
    one, other = (shards._random_state(rank, 2 << 20, 1 << 20, seed=7) for rank in ranks)
    assert one.keys().isdisjoint(other.keys())
    assert set(shards._empty_like_neighbours(ranks[0], one)) == set(other)
    hashes = [*shards.hashes_of(one).values(), *shards.hashes_of(other).values()]
    assert len(set(hashes)) == 4
    assert one.keys() == shards._random_state(ranks[0], 2 << 20, 1 << 20, seed=7).keys()
    assert all(torch.equal(a, b) for a, b in zip(one.values(), _again(ranks[0]).values(), strict=True))


def _again(context: object) -> dict[str, object]:
    return shards._random_state(context, 2 << 20, 1 << 20, seed=7)


@pytest.mark.parametrize("wrong", [{"saves": 0}, {"mib_per_rank": 3}, {"tensor_mib": 0}])
def test_settings_that_cannot_run_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="checkpoint"):
        dataclasses.replace(SMALL, **wrong)
