"""Schedules: disjoint pairs in each round, and everybody meets everybody, or log2(n) others."""

from itertools import combinations
from math import ceil, log2

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hwlottery.probes.tournament import Meeting, hypercube, round_robin


def assert_disjoint(rounds: list[list[Meeting]], nodes: int) -> None:
    for meetings in rounds:
        taken = [node for meeting in meetings for node in meeting]
        assert len(set(taken)) == len(taken)
        assert set(taken) <= set(range(nodes))
        assert all(one < other for one, other in meetings)


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 130))
def test_in_a_round_robin_every_pair_meets_exactly_once(nodes: int) -> None:
    rounds = round_robin(nodes)
    assert_disjoint(rounds, nodes)
    assert sorted(meeting for meetings in rounds for meeting in meetings) == list(combinations(range(nodes), 2))


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 130))
def test_a_round_robin_wastes_no_round(nodes: int) -> None:
    rounds = round_robin(nodes)
    assert len(rounds) == (nodes - 1 if nodes % 2 == 0 else nodes)
    assert {len(meetings) for meetings in rounds} == {nodes // 2}


@settings(max_examples=80, deadline=None)
@given(st.integers(2, 600))
def test_a_hypercube_takes_log2_rounds_or_a_few_more_and_no_pair_meets_twice(nodes: int) -> None:
    rounds = hypercube(nodes)
    assert_disjoint(rounds, nodes)
    assert ceil(log2(nodes)) <= len(rounds) <= ceil(log2(nodes)) + 2
    everything = [meeting for meetings in rounds for meeting in meetings]
    assert len(set(everything)) == len(everything)


@settings(max_examples=80, deadline=None)
@given(st.integers(3, 600))
def test_in_a_hypercube_everybody_meets_three_others_at_least_and_all_are_connected(nodes: int) -> None:
    met: dict[int, set[int]] = {node: set() for node in range(nodes)}
    for one, other in (meeting for meetings in hypercube(nodes) for meeting in meetings):
        met[one].add(other)
        met[other].add(one)
    assert min(map(len, met.values())) >= min(3, nodes - 1)
    reached, edge = set[int](), [0]
    while edge:
        node = edge.pop()
        reached.add(node)
        edge += met[node] - reached
    assert len(reached) == nodes


@pytest.mark.parametrize("power", [2, 8, 64, 512])
def test_with_a_power_of_two_partners_differ_in_one_bit_and_nobody_rests(power: int) -> None:
    for bit, meetings in enumerate(hypercube(power)):
        assert len(meetings) == power // 2
        assert all(one ^ other == 1 << bit for one, other in meetings)


@pytest.mark.parametrize("nodes", [0, 1])
def test_fewer_than_two_nodes_have_nobody_to_meet(nodes: int) -> None:
    assert round_robin(nodes) == []
    assert hypercube(nodes) == []
