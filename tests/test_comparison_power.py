"""How often what is the same is told apart, and what differs is found: over 400 fixed seeds, and some through files."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from compared_clusters import Cluster, compared_run, false_claims, found_slower, whole_cluster, written_run

from hwlottery.evidence import read_run
from hwlottery.scoring.comparison import compare
from hwlottery.scoring.comparison_sides import EVERYTHING

SEEDS = range(400)
pytestmark = pytest.mark.slow


def share(found: list[set[str]]) -> float:
    return sum(map(bool, found)) / len(found)


@pytest.mark.parametrize("nodes", [2, 16])
def test_two_runs_of_one_cluster_are_told_apart_in_at_most_three_of_a_hundred(nodes: int) -> None:
    """In any figure: the pair of runs as a whole."""
    assert share(false_claims(SEEDS, nodes=nodes)) <= 0.03


def test_with_history_they_are_so_too() -> None:
    assert share(false_claims(SEEDS, repeats=3)) <= 0.03


@pytest.mark.parametrize("nodes", [2, 16])
def test_a_cluster_that_is_ten_percent_slower_is_found_in_ninety_nine_of_a_hundred(nodes: int) -> None:
    assert share(found_slower(SEEDS, whole_cluster(0.9), nodes=nodes)) >= 0.99


@pytest.mark.parametrize("key", ["training", "products", "memory", "host_link", "node_reduce", "pair_reduce"])
def test_ten_percent_in_one_figure_alone_is_found_in_ninety_nine_of_a_hundred(key: str) -> None:
    with_it = ("money", "useful") if key == "training" else ()
    assert share(found_slower(SEEDS, dict.fromkeys((key, *with_it), 0.9))) >= 0.99


def test_the_cost_of_a_useful_pflop_day_is_found_ten_percent_higher_in_ninety_nine_of_a_hundred() -> None:
    found = found_slower(SEEDS, whole_cluster(0.9))
    assert sum("money" in one for one in found) / len(found) >= 0.99


def _told_apart(one: Path, other: Path) -> Mapping[str, bool]:
    found = compare([read_run(one), read_run(other)])
    assert found.comparisons == len(EVERYTHING)
    return {each.key: any(c.told_apart for c in each.contrasts) for each in found.metrics}


@pytest.mark.parametrize("seed", range(6))
def test_through_files_the_same_is_alike_and_ten_percent_are_found(seed: int, tmp_path: Path) -> None:
    cluster, other = (Cluster(seed=10 + seed + 100 * place, nodes=4, devices=4) for place in range(2))
    first = written_run(tmp_path / "first", cluster)
    again = written_run(tmp_path / "again", cluster, run=1)
    slower = written_run(tmp_path / "slower", other, slower=whole_cluster(0.9))
    assert not any(_told_apart(first, again).values())
    found = _told_apart(first, slower)
    assert found["training"]
    assert found["memory"]


def test_ten_runs_at_once_still_tell_a_twentieth_of_memory_and_a_tenth_of_training_apart() -> None:
    """More comparisons ask for more: 45 pairs of ten runs."""
    runs = [compared_run(Cluster(seed=seed, nodes=4, devices=2)) for seed in range(9)]
    runs.append(compared_run(Cluster(seed=9, nodes=4, devices=2), slower={"training": 0.85, "memory": 0.92}))
    found = compare(runs)
    assert found.comparisons == 45 * len(EVERYTHING)
    for key in ("training", "memory"):
        one = next(each for each in found.metrics if each.key == key)
        apart = {frozenset((c.first, c.second)) for c in one.contrasts if c.told_apart}
        assert apart
        assert all("J" in pair for pair in apart), "nobody else is told apart"
