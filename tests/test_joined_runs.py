"""Judging runs in which nodes joined an accepted one: each node by its own figures, and no damage makes one better."""

from functools import cache

import msgspec
import pytest
from generated_joins import Made, make_join
from generated_runs import as_run, write_records, write_run

from hwlottery.evidence import Event, Measurement, NotMeasured, RunError, TrialPlan, read_run
from hwlottery.reports.page import render
from hwlottery.scoring import score_run
from hwlottery.scoring.acceptance import good_partners
from hwlottery.scoring.defects import defects

REPLACED = {"newcomers": ("n01",), "partners": ("n00", "n02", "n03"), "replaces": {"n01": "n01"}}
OTHER_NAME = {"newcomers": ("n09",), "partners": ("n00", "n02", "n03"), "replaces": {"n09": "n01"}}
JOINS: dict[str, tuple[str, list[str], dict[str, object]]] = {
    "healthy": ("GO", [], {}),
    "a newcomer slow with everybody": ("CONDITIONAL", ["n04"], {"faults": ["slow_node@n04=0.6"]}),
    "a slow accelerator on a newcomer": ("CONDITIONAL", ["n04"], {"faults": ["slow@n04/gpu0=0.78"]}),
    "a newcomer that never came": ("CONDITIONAL", ["n04"], {"faults": ["never_joined@n04"]}),
    "a bad node that stays": ("CONDITIONAL", ["n01"], {"before": ["slow_node@n01=0.6"], "partners": ("n00", "n02")}),
    "a partner that has become slow": ("CONDITIONAL", ["n02"], {"faults": ["slow_node@n02=0.6"]}),
    "other hardware for a slow node": ("GO", [], {"before": ["slow_node@n01=0.6"], **REPLACED}),
    "other hardware for one that hung": ("GO", [], {"before": ["hung@n01/gpu0"], **REPLACED}),
    "other hardware for one that was lost": ("GO", [], {"before": ["lost@n01"], **REPLACED}),
    "another node for a wrong one": ("GO", [], {"before": ["mismatch@n01/gpu1=2"], **OTHER_NAME}),
    "another node for one that never came": ("GO", [], {"before": ["never_joined@n01"], **OTHER_NAME}),
    "a stand-in that is slow too": (
        "CONDITIONAL",
        ["n01"],
        {"before": ["slow_node@n01=0.6"], "faults": ["slow_node@n01=0.5"], **REPLACED},
    ),
    "too short a look at the newcomer": ("INCONCLUSIVE", [], {"hours": 0.5}),
}


@cache
def made(name: str) -> Made:
    return make_join(**JOINS[name][2])  # type: ignore[arg-type]


@pytest.mark.parametrize("name", JOINS)
def test_each_node_is_judged_by_what_it_is_now(name):
    word, excluded, _ = JOINS[name]
    run = as_run(*made(name))
    assert defects(run) == []
    verdict = score_run(run)
    assert (verdict.verdict, list(verdict.exclude)) == (word, excluded), verdict.reasons


def test_a_joined_run_is_whole_on_disk_and_its_page_says_who_was_measured_when(tmp_path):
    header, records = made("other hardware for a slow node")
    run = read_run(write_records(tmp_path / "run", header, records))
    assert run.problems == []
    verdict = score_run(run)
    when = {each.node: each for each in verdict.measured}
    first, second = (segment.start for segment in header.segments)
    assert when["n00"].starts == (first, second)
    assert when["n00"].accepted_in == "generated-7"
    assert when["n01"].starts == (second,)
    assert (when["n01"].replaces, when["n01"].hardware_changed) == ("n01", True)
    assert verdict.caveats[0].startswith("Not measured at one time: ")
    assert "n01 (its hardware changed) on 2026-12-" in verdict.caveats[0]
    assert "Which node was measured when" in render(run, verdict)


def test_figures_of_the_whole_cluster_say_over_which_nodes_they_were_taken():
    header, records = make_join(partners=("n00", "n01"))
    verdict = score_run(as_run(header, records))
    details = {f.check: f.detail for f in verdict.findings if f.subject == "cluster" and f.metric}
    assert details["burn_in.loss_falls"] == "over n00, n01, n04"
    assert details["all_reduce.across_nodes"].endswith("over n00, n01, n04")


def test_a_fabric_that_is_slower_for_all_today_accuses_no_newcomer():
    header, records = make_join()
    slower = [
        msgspec.structs.replace(one, samples=tuple(0.7 * sample for sample in one.samples))
        if isinstance(one, Measurement) and one.metric == "all_reduce.busbw" and "~" in one.subject and one.samples
        and (one.trial or "").endswith("-j")
        else one
        for one in records
    ]  # fmt: skip
    assert slower != records
    assert score_run(as_run(header, slower)).exclude == ()


def test_good_partners_are_the_nodes_that_are_not_taken_out_the_best_first(tmp_path):
    accepted = read_run(write_run(tmp_path / "run", nodes=4, accelerators=2, faults=["slow_node@n01=0.6"], seed=7))
    assert set(good_partners(accepted)) == {"n00", "n02", "n03"}
    (tmp_path / "run" / "facts.jsonl").write_text("")
    with pytest.raises(RunError, match="is not whole"):
        good_partners(read_run(tmp_path / "run"))


def assert_no_better(before, after, what):
    assert before.signable or not after.signable, what
    assert not after.signable or set(after.exclude) >= set(before.exclude), what


LAWFUL = ["a newcomer slow with everybody", "a bad node that stays", "too short a look at the newcomer"]


@pytest.mark.parametrize("name", LAWFUL)
def test_no_record_of_either_part_can_be_left_out_to_make_a_run_better(name):
    header, records = made(name)
    before = score_run(as_run(header, records))
    for place, record in enumerate(records):
        rare = isinstance(record, NotMeasured) or (isinstance(record, Event) and record.kind != "trial_ended")
        if not isinstance(record, TrialPlan) and (rare or place % 61 == 0):
            after = score_run(as_run(header, [*records[:place], *records[place + 1 :]]))
            assert_no_better(before, after, f"leaving out {record}")


@pytest.mark.parametrize("name", LAWFUL)
def test_a_damaged_file_of_either_part_makes_no_run_better(name, tmp_path):
    header, records = made(name)
    path = write_records(tmp_path / "run", header, records)
    before = score_run(read_run(path))
    for file in ("plan.jsonl", "facts.jsonl", "measurements.jsonl", "events.jsonl"):
        content = (path / file).read_bytes()
        lines = content.splitlines(keepends=True)
        for gone in (0, len(lines) // 3, len(lines) - 1):
            (path / file).write_bytes(b"".join(lines[:gone] + lines[gone + 1 :]))
            assert_no_better(before, score_run(read_run(path)), f"{file} without line {gone}")
        (path / file).write_bytes(content)
    assert score_run(read_run(path)) == before


def rewritten(header, **change):
    return msgspec.structs.replace(header, joins=(msgspec.structs.replace(header.joins[0], **change),))


@pytest.mark.parametrize("name", ["a bad node that stays", "a newcomer slow with everybody"])
@pytest.mark.parametrize(
    "change",
    [
        {"replaces": {"n04": "n01"}},
        {"replaces": {"n01": "n01"}},
        {"newcomers": ("n01", "n04"), "replaces": {"n01": "n01"}},
        {"newcomers": ()},
        {"newcomers": ("n00",), "partners": ("n04",)},
        {"last_number": 5},
        {"starts": 7},
        {"again": True},
    ],
    ids=str,
)
def test_what_run_json_says_of_a_join_cannot_be_rewritten_to_make_a_run_better(name, change):
    header, records = made(name)
    before = score_run(as_run(header, records))
    other = rewritten(header, **change)
    named = set(change.get("replaces", {}).values())
    other_former = rewritten(other, former=tuple(node for node in header.known if node.node in named))
    for changed in (other, other_former):
        assert_no_better(before, score_run(as_run(changed, records)), change)
    assert_no_better(before, score_run(as_run(msgspec.structs.replace(header, joins=()), records)), "no joins")


def test_an_accepted_run_ends_where_run_json_says(tmp_path):
    header, records = made("healthy")
    moved = rewritten(header, last_number=header.joins[0].last_number - 1)
    run = read_run(write_records(tmp_path / "run", moved, records))
    assert "an accepted run does not end where it says" in [problem.detail for problem in run.problems]
