"""The law of the verdict, of runs beside an earlier one: no damage to either makes a run better than it was."""

import random
import shutil
from functools import cache
from pathlib import Path

import msgspec
import pytest
from generated_rechecks import baseline, make_recheck, write_recheck
from generated_runs import as_run
from hypothesis import given, settings
from hypothesis import strategies as st
from test_verdict_law import DAMAGES, SLOW_DISK, Damage, assert_no_better, judged

from hwlottery.evidence import AnyRecord, Event, Measurement, NotMeasured, Run, RunHeader, TrialPlan, metric, read_run
from hwlottery.scoring import score_run

RECHECKS: dict[str, tuple[str, list[str]]] = {
    "healthy": ("GO", ["kept@cluster"]),
    "files of the kept checkpoint are gone": ("NO_GO", ["kept_gone@cluster=2"]),
    "a file of it is altered": ("NO_GO", ["kept_altered@cluster=1"]),
    "one accelerator slower than before": ("CONDITIONAL", ["kept@cluster", "slow@n01/gpu1=0.78"]),
    "memory slower than before, seen once": ("INCONCLUSIVE", ["kept@cluster", "slow_memory@n02/gpu0=0.85"]),
    "wrong elements in an all-to-all": ("NO_GO", ["kept@cluster", "wrong_all_to_all@cluster=2"]),
    "sockets where there is RDMA": ("CONDITIONAL", ["kept@cluster", "sockets@n01"]),
}


@cache
def accepted() -> Run:
    return baseline()


@cache
def records_of(name: str, counted: bool) -> tuple[RunHeader, tuple[AnyRecord, ...]]:
    header, records = make_recheck(RECHECKS[name][1])
    if not counted:
        records = [msgspec.structs.replace(r, counts=None) if isinstance(r, Event) else r for r in records]
    return header, tuple(records)


@pytest.mark.parametrize("name", RECHECKS)
def test_the_rechecks_have_the_verdicts_that_the_law_is_tested_on(tmp_path: Path, name: str) -> None:
    run = read_run(write_recheck(tmp_path / "run", RECHECKS[name][1]))
    assert run.problems == []
    verdict = score_run(run)
    assert verdict.verdict == RECHECKS[name][0], verdict.reasons
    header, records = records_of(name, counted=True)
    assert score_run(as_run(header, list(records)), baseline=accepted()).findings == verdict.findings


@pytest.mark.parametrize("name", ["files of the kept checkpoint are gone", "a file of it is altered"])
def test_a_header_that_names_no_baseline_does_not_hide_what_was_looked_for(name: str) -> None:
    header, records = records_of(name, counted=True)
    after = score_run(as_run(msgspec.structs.replace(header, baseline=None), list(records)))
    assert after.verdict == "NO_GO"


def speaks_of_a_fault(record: AnyRecord) -> bool:
    """Events, what was looked for, and counts above 0: of the many healthy values and facts others tell."""
    if isinstance(record, Event | NotMeasured):
        return True
    if not isinstance(record, Measurement):
        return False
    counts = metric(record.metric).unit in ("elements", "errors", "files", "ranks") and any(record.samples or ())
    return counts or record.metric.startswith("retention.") or record.subject in ("n01/gpu1", "n02/gpu0")


@pytest.mark.slow
@pytest.mark.parametrize("counted", [True, False])
@pytest.mark.parametrize("name", [name for name in RECHECKS if name != "healthy"])
def test_no_single_record_of_a_recheck_can_be_left_out_to_make_it_better(name: str, counted: bool) -> None:
    header, records = records_of(name, counted)
    before = score_run(as_run(header, list(records)), baseline=accepted())
    for place, record in enumerate(records):
        if not isinstance(record, TrialPlan) and speaks_of_a_fault(record):
            left = [*records[:place], *records[place + 1 :]]
            assert_no_better(before, score_run(as_run(header, left), baseline=accepted()), f"leaving out {record}")


@settings(max_examples=5, deadline=None)
@given(seed=st.integers(0, 2**32), share=st.sampled_from([0.01, 0.1, 0.5]))
def test_a_baseline_with_holes_makes_no_recheck_better(seed: int, share: float) -> None:
    chance = random.Random(seed)
    whole = accepted()
    left = {
        name: [record for record in getattr(whole, name) if chance.random() > share]
        for name in ("measurements", "facts")
    }
    holed = msgspec.structs.replace(whole, **left)
    for name in RECHECKS:
        header, records = records_of(name, counted=True)
        run = as_run(header, list(records))
        assert_no_better(score_run(run, baseline=whole), score_run(run, baseline=holed), f"{name}, seed {seed}")


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("rechecks")
    return {name: write_recheck(folder / str(n), faults) for n, (name, (_, faults)) in enumerate(RECHECKS.items())}


@pytest.mark.parametrize("where", ["now", pytest.param("before", marks=pytest.mark.slow)])
@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
@settings(max_examples=2, deadline=None, suppress_health_check=SLOW_DISK)
@given(seed=st.integers(0, 2**32), name=st.sampled_from(sorted(RECHECKS)))
def test_damaged_files_of_a_recheck_or_of_its_copy_never_make_it_better(
    tmp_path_factory: pytest.TempPathFactory,
    written: dict[str, Path],
    damage: Damage,
    where: str,
    seed: int,
    name: str,
) -> None:
    path = tmp_path_factory.mktemp("law") / "run"
    shutil.copytree(written[name], path, symlinks=True)
    damage(path / "baseline" if where == "before" else path, random.Random(seed))
    assert_no_better(judged(written[name]), judged(path), f"{damage.__name__} {where} with seed {seed}")
