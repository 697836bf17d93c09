"""What a run that is gone on with takes over: by node and trial, pure."""

import msgspec
from generated_joins import make_join
from generated_runs import as_run
from plans import cluster_of

from hwlottery.cluster import Trial
from hwlottery.evidence import Fill
from hwlottery.runner.absent import absent_from, with_those_here
from hwlottery.runner.earlier import earlier_of, last_seen
from hwlottery.runner.identify import differences

REPLACED = {"newcomers": ("n01",), "partners": ("n00", "n02", "n03"), "replaces": {"n01": "n01"}}


def test_a_node_that_is_gone_or_new_is_no_change_and_other_hardware_is() -> None:
    header, _ = make_join()
    seen = last_seen(header)
    assert seen is not None
    fewer = msgspec.structs.replace(seen, software={"n00": {"torch": "2.13.0"}}, hardware={"n00": "of n00"})
    assert differences(seen, fewer) == []
    more = msgspec.structs.replace(seen, hardware={**seen.hardware, "n77": "new n77"})
    assert differences(seen, more) == []
    other = msgspec.structs.replace(seen, hardware={"n00": "of n99"})
    assert differences(seen, other) == ["hardware of n00 was of n00, is of n99"]
    torch = msgspec.structs.replace(seen, software={"n00": {"torch": "2.14.0"}}, hardware={})
    assert differences(seen, torch) == ["n00: torch was 2.13.0, is 2.14.0"]


def test_a_newcomer_is_known_from_its_join_on() -> None:
    header, _ = make_join(**REPLACED)  # type: ignore[arg-type]
    beginning = msgspec.structs.replace(header, segments=header.segments[:1])
    before, after = last_seen(beginning), last_seen(header)
    assert before is not None
    assert after is not None
    assert "n01" not in before.hardware
    assert after.hardware["n01"] == "new n01"


def test_a_join_takes_over_trials_of_accepted_nodes_and_none_of_whom_a_newcomer_stands_for() -> None:
    header, records = make_join(**REPLACED)  # type: ignore[arg-type]
    run = as_run(header, records)
    earlier = earlier_of(run, header)
    by_trial = {plan.trial: plan for plan in run.plans}
    then = [by_trial[t] for t in earlier.outcomes if (by_trial[t].number or 0) <= header.joins[0].last_number]
    assert then
    assert not any(rank.startswith("n01/") for plan in then for rank in plan.ranks)
    assert "n01" in earlier.took_part["matmul"], "by what the join itself has brought"
    assert earlier_of(run, msgspec.structs.replace(header, joins=())).took_part["matmul"] >= {"n00", "n01"}
    again = msgspec.structs.replace(header, joins=(msgspec.structs.replace(header.joins[0], again=True),))
    assert len(earlier_of(run, again).outcomes) < len(earlier.outcomes)


def trial(*, collective: bool) -> Trial:
    ranks = cluster_of(3, ranks=1).ranks
    fills = tuple(Fill(metric="matmul.tflops", subject=rank.subject) for rank in ranks)
    return Trial(
        function="x:y", ranks=ranks, collective=collective, deadline_s=1.0, expected_s=1.0, fills=fills
    )  # fmt: skip


def test_ranks_that_work_each_for_itself_go_on_without_absent_nodes_and_a_collective_does_not() -> None:
    gone = frozenset(("n01",))
    left = with_those_here(trial(collective=False), gone)
    assert [rank.node for rank in left.ranks] == ["n00", "n02"]
    assert [fill.subject for fill in left.fills] == ["n00/slot0", "n02/slot0"]
    assert absent_from(left, gone) == ()
    whole = trial(collective=True)
    assert with_those_here(whole, gone) is whole
    assert absent_from(whole, gone) == ("n01",)
    nobody = frozenset(("n00", "n01", "n02"))
    assert with_those_here(trial(collective=False), nobody) == trial(collective=False)
