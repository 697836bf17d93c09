"""Stack friction: what the records of a run tell of the time and trouble before the first useful work."""

from pathlib import Path

import msgspec
from generated_runs import START, as_run, make_run, write_run

from hwlottery.evidence import Event, Run, read_run
from hwlottery.scoring.friction import friction_of


def run_of(*faults: str) -> Run:
    header, records = make_run(nodes=4, accelerators=2, faults=faults)
    return as_run(header, records)


def test_the_first_all_reduce_is_timed_from_the_first_command_to_its_end() -> None:
    run = run_of()
    sums = {p.trial for p in run.plans if any(fill.metric == "all_reduce.busbw" for fill in p.fills)}
    ends = [e.time for e in run.events if e.kind == "trial_ended" and e.trial in sums and e.outcome == "finished"]
    assert friction_of(run).first_all_reduce_s == (min(ends) - START).total_seconds() > 0


def test_where_no_all_reduce_ended_well_there_is_no_time() -> None:
    run = run_of()
    run.events = [e for e in run.events if e.kind != "trial_ended"]
    assert friction_of(run).first_all_reduce_s is None


def test_a_promised_node_that_never_joined_is_named() -> None:
    assert friction_of(run_of("never_joined@n02")).never_joined == ("n02",)
    assert friction_of(run_of()).never_joined == ()


def test_a_missing_tool_is_told_once_with_the_nodes_that_lack_it() -> None:
    found = friction_of(run_of("tool_missing@n01", "tool_missing@n03")).missing_tools
    assert found == (("apt-get install fio", ("n01", "n03")),)


def test_versions_that_differ_are_told_the_most_common_first() -> None:
    run = run_of()
    software = {f"n0{i}": {"torch": "2.12" if i == 3 else "2.13", "nccl": "2.26"} for i in range(4)}
    segment = msgspec.structs.replace(run.header.segments[0], software=software)
    run.header = msgspec.structs.replace(run.header, segments=(segment,))
    (differing,) = friction_of(run).differing
    assert (differing.name, differing.versions) == ("torch", (("2.13", ("n00", "n01", "n02")), ("2.12", ("n03",))))


def test_a_run_that_holds_nothing_gives_no_figure() -> None:
    run = run_of()
    run.plans, run.events = [], [Event(time=START, kind="run_started")]
    run.header = msgspec.structs.replace(run.header, segments=())
    found = friction_of(run)
    assert (found.first_all_reduce_s, found.starts, found.differing) == (None, 0, ())


def test_a_run_from_disk_tells_the_same(tmp_path: Path) -> None:
    run = read_run(write_run(tmp_path / "run", nodes=4, accelerators=2))
    assert friction_of(run) == friction_of(run_of())
