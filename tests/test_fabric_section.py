"""What the page's fabric section says of pairs, nodes, rails and the whole: who is slow, how sure, and what next."""

import base64
import struct
from itertools import pairwise
from pathlib import Path

import pytest
from generated_runs import write_run

from hwlottery.evidence import Run, read_run
from hwlottery.reports.layout import Matrix, Part, Section, Table
from hwlottery.reports.measured import Measured
from hwlottery.reports.pairs_seen import pairs_seen
from hwlottery.reports.sections.fabric import fabric
from hwlottery.reports.sections.fabric_pairs import every_pair
from hwlottery.scoring import score_run


def section(place: Path, *faults: str, nodes: int = 4, all_pairs_up_to: int = 16) -> Section:
    run = run_of(place, *faults, nodes=nodes, all_pairs_up_to=all_pairs_up_to)
    return fabric(Measured(run), score_run(run))


def run_of(place: Path, *faults: str, nodes: int, all_pairs_up_to: int = 16) -> Run:
    path = place / "run"
    return read_run(write_run(path, nodes=nodes, accelerators=2, faults=faults, all_pairs_up_to=all_pairs_up_to))


def of_pairs(place: Path, *faults: str, nodes: int = 4, all_pairs_up_to: int = 16) -> Part:
    """The part on pairs alone: no chart has to be drawn for it."""
    run = run_of(place, *faults, nodes=nodes, all_pairs_up_to=all_pairs_up_to)
    seen = pairs_seen(run, score_run(run))
    assert seen is not None
    return every_pair(Measured(run), seen)


def part(told: Section, title: str) -> Part:
    return next(each for each in told.parts if each.title == title)


def table(of: Part, caption: str) -> Table:
    return next(each for each in of.tables if each.caption == caption)


def matrix(told: Part) -> Matrix:
    assert told.matrix is not None
    return told.matrix


def squares(shown: Matrix) -> dict[tuple[str, str], float]:
    """Each measured pair's share of the usual, by the names of its row and column."""
    raw = base64.b64decode(shown.values)
    numbers = iter(struct.unpack(f"<{len(raw) // 2}H", raw))
    every = {
        (one, other): next(numbers) / 65535 * shown.top
        for row, one in enumerate(shown.names)
        for other in shown.names[row + 1 :]
    }
    return {pair: share for pair, share in every.items() if share}


def test_the_matrix_holds_every_pair_as_a_share_of_the_usual_in_the_order_of_the_names(tmp_path: Path) -> None:
    shown = matrix(of_pairs(tmp_path, "slow_link@n00~n02=0.5"))
    assert shown.names == ("n00", "n01", "n02", "n03")
    assert shown.title == "6 pairs: n00~n02 stands out"
    assert shown.usual == pytest.approx(190, rel=0.02)
    found = squares(shown)
    assert len(found) == 6
    assert found.pop(("n00", "n02")) == pytest.approx(0.5, abs=0.03)
    assert all(share == pytest.approx(1.0, abs=0.05) for share in found.values())


def test_names_stand_in_their_natural_order(tmp_path: Path) -> None:
    names = matrix(of_pairs(tmp_path, nodes=110, all_pairs_up_to=4)).names
    assert names.index("n100") == names.index("n99") + 1


def test_where_cables_name_their_leaf_nodes_stand_by_leaf_with_borders_between(tmp_path: Path) -> None:
    shown = matrix(of_pairs(tmp_path, "leaves@cluster=2", nodes=6))
    assert shown.groups == (("leaf1", 3), ("leaf2", 3))
    assert shown.names == ("n00", "n02", "n04", "n01", "n03", "n05")
    assert "by leaf switch" in shown.note
    assert len(squares(shown)) == 15


def test_two_levels_of_the_fabric_group_the_nodes_and_are_nobody_s_fault(tmp_path: Path) -> None:
    told = of_pairs(tmp_path, "two_levels@cluster=0.6", nodes=8)
    shown = matrix(told)
    assert [length for _, length in shown.groups] == [4, 4]
    assert "groups within which pairs are fast" in shown.note
    assert shown.title == "28 pairs show two levels of the fabric"
    assert not any(mark.kind == "slow" for mark in shown.marks)
    blamed = {row[4].text for row in table(told, "The slowest pairs and their retests").rows}
    assert blamed == {"a slower level of the fabric"}


def test_squares_that_stand_out_were_retested_or_lack_a_value_are_marked(tmp_path: Path) -> None:
    shown = matrix(of_pairs(tmp_path, "slow_link@n00~n02=0.5", "no_pair@n01~n03", nodes=6))
    kinds = {(mark.row, mark.column): mark for mark in shown.marks}
    assert kinds[0, 2].kind == "slow"
    assert kinds[0, 2].retests >= 2
    assert kinds[1, 3].kind == "gap"
    assert [words for _, words in shown.key] == ["stands out", "measured again, alone", "tried, no value came"]
    assert shown.title.startswith("14 of 15 pairs")


def test_a_pair_without_a_value_is_named_with_the_reason(tmp_path: Path) -> None:
    answer = of_pairs(tmp_path, "no_pair@n00~n01").answer
    assert answer.startswith("5 of 6 pairs have a value")
    assert "No value came of n00~n01 (timeout)." in answer


def test_a_sampled_tournament_is_said_to_be_one(tmp_path: Path) -> None:
    told = of_pairs(tmp_path, nodes=20)
    assert "of 190 pairs were measured, a hypercube's" in told.answer
    assert "A slow link between two nodes that did not meet does not show." in told.answer
    assert told.matrix is not None
    assert ("blank", "not measured") in told.matrix.key


def test_a_slow_node_is_named_with_what_to_look_at_and_its_many_pairs_are_not_all_listed(tmp_path: Path) -> None:
    told = of_pairs(tmp_path, "slow_node@n07=0.6", nodes=16)
    assert "Slow with each partner: n07 (" in told.answer
    assert "NICs, cables and PCIe links" in told.answer
    worst = table(told, "The slowest pairs and their retests")
    assert all("n07" in row[0].text for row in worst.rows)
    assert len(worst.rows) < 15
    assert "more, of nodes named here" in worst.note
    assert [row[5].text for row in worst.rows][1:] == ["as above"] * (len(worst.rows) - 1)


def test_a_slow_link_stands_with_its_tournament_value_each_retest_and_who_is_to_blame(tmp_path: Path) -> None:
    told = of_pairs(tmp_path, "slow_link@n01~n04=0.5", nodes=6)
    (row,) = table(told, "The slowest pairs and their retests").rows
    pair, beside, alone, share, blamed, todo = row
    assert pair.text == "n01~n04"
    assert float(beside.sort or 0) == pytest.approx(95, rel=0.05)
    retests = [float(each) for each in alone.text.removesuffix(" GB/s").split(", ")]
    assert len(retests) >= 2
    assert retests == pytest.approx([95] * len(retests), rel=0.05)
    assert float(share.sort or 0) == pytest.approx(0.5, abs=0.03)
    assert blamed.text == "the link between them"
    assert "cables, switch ports, routes" in todo.text


def test_a_pair_that_is_slow_only_beside_others_blames_nobody(tmp_path: Path) -> None:
    told = of_pairs(tmp_path, "unsteady_link@n02~n03")
    assert "Slow beside others and well alone: n02~n03." in told.answer
    (row,) = table(told, "The slowest pairs and their retests").rows
    assert row[4].text.startswith("nobody when alone")


def test_what_cannot_be_told_apart_is_said_with_what_would_settle_it(tmp_path: Path) -> None:
    """Of three nodes, two pairs are slow or missing: the third node, or the link."""
    told = of_pairs(tmp_path, "slow_link@n00~n01=0.5", "no_pair@n00~n02", nodes=3)
    assert "Not told apart: one of n00, the link n00~n01 is slow." in told.answer
    (row,) = table(told, "Not told apart").rows
    assert row[0].text == "n00, the link n00~n01"
    assert row[4].text.startswith("Measure")


def test_one_pair_has_no_matrix_and_is_not_called_good(tmp_path: Path) -> None:
    told = section(tmp_path, nodes=2)
    pairs = part(told, "Every pair of nodes")
    assert pairs.matrix is None
    assert "only a reference could tell" in pairs.answer
    assert "stands out" not in told.answer


def test_one_node_has_no_pairs_at_all(tmp_path: Path) -> None:
    assert section(tmp_path, nodes=1).parts == ()


def test_each_node_is_drawn_with_its_interval_the_slowest_first_and_the_rest_counted(tmp_path: Path) -> None:
    told = part(section(tmp_path, "slow_node@n02=0.6", nodes=30, all_pairs_up_to=30), "Each node at its best")
    assert told.chart is not None
    assert told.chart.title == "n02 is 40 % below the usual"
    assert "95 % interval" in told.chart.note
    assert "10 more nodes, from 1" in told.chart.note
    assert told.chart.svg.count('data-tip="n') == 20
    able = table(told, "What each node can do")
    assert (able.rows[0][0].text, able.rows[0][2].text) == ("n02", "fail")
    assert "95 % interval" in able.rows[1][3].text


def test_a_slow_node_is_not_flagged_where_its_own_all_reduce_is_well(tmp_path: Path) -> None:
    told = section(tmp_path, "slow_node@n02=0.6")
    own = next(each for each in told.tables if each.caption.startswith("By subject"))
    assert own.folded
    assert not any(row[0].tone for row in own.rows)


def test_the_scaling_curve_goes_from_two_nodes_to_all_against_a_good_pair(tmp_path: Path) -> None:
    told = part(section(tmp_path, nodes=8), "More nodes at once")
    assert told.chart is not None
    assert told.chart.title.startswith("From 2 to 8 nodes bus bandwidth falls to 9")
    assert "a good pair 1" in told.chart.svg
    (curve,) = told.tables
    assert [row[0].sort for row in curve.rows] == [8, 4, 2]
    shares = [float(row[3].sort or 0) for row in curve.rows]
    assert all(more < fewer for more, fewer in pairwise(shares))


def test_latency_and_stalls_are_told_and_a_common_node_is_named(tmp_path: Path) -> None:
    told = part(section(tmp_path, "lossy_node@n01"), "Small messages")
    assert "An all-reduce of 8 B takes" in told.answer
    assert "Small messages stalled on 3 pairs" in told.answer
    assert "All are n01's" in told.answer
    assert len(told.tables[0].rows) == 3
    assert "No small message stalled" in part(section(tmp_path / "well"), "Small messages").answer


def test_a_slow_rail_is_named_by_node_and_number_though_each_of_its_pairs_is_slow(tmp_path: Path) -> None:
    told = part(section(tmp_path, "rails@cluster=4", "slow_rail@n02=3", nodes=5), "Rails")
    assert told.chart is not None
    assert told.chart.title == "n02 rail 3 is 50 % below the median"
    (row,) = table(told, "Slow rails").rows
    assert row[0].text == "n02 rail 3"
    assert row[3].text == "2"
    assert len(table(told, "By rail").rows) == 4


def test_a_rail_that_met_one_partner_is_told_as_the_pair_s(tmp_path: Path) -> None:
    told = part(section(tmp_path, "rails@cluster=2", "slow_rail@n00=1", nodes=2), "Rails")
    (row,) = table(told, "Slow rails").rows
    assert row[0].text in ("n00~n01 rail 1", "n01~n00 rail 1")


def test_every_collective_over_the_cluster_is_in_one_table(tmp_path: Path) -> None:
    told = part(section(tmp_path, nodes=4), "Every collective")
    words = {row[0].text for row in told.tables[0].rows}
    assert words == {"all-reduce", "all-gather", "reduce-scatter", "all-to-all"}
    assert "all-to-all" in told.answer


def test_what_a_pair_keeps_beside_others_is_told_with_how_many_show_it(tmp_path: Path) -> None:
    answer = part(section(tmp_path, nodes=16), "Every collective").answer
    assert "as fast beside others as alone" in answer
    assert "good pairs measured both ways" in answer
