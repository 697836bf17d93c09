"""The min-model: who is slow is found, who is not is left alone, and what cannot be told is said."""

import random
import statistics
from collections import Counter
from itertools import combinations

import pytest
from detect_pairs import KINDS, results
from hypothesis import given, settings
from hypothesis import strategies as st
from pair_matrices import CEILING, Matrix, accused, judged, make_matrix

from hwlottery.fabric import Blame, Observation, Pair, Thresholds, blame, controls, levels_of, pair_of, wanted_retests

RETESTS = 3


def seen(shares: dict[str, float], *, alone: int = 0) -> list[Observation]:
    """Pairs 'ab' at these shares of 50 GB/s, once in the tournament and so often alone."""
    return [
        Observation(pair=pair_of(*name), value=50 * share, alone=again > 0)
        for name, share in shares.items()
        for again in range(alone + 1)
    ]


def judge(shares: dict[str, float], *, ceiling: float | None = None, alone: int = RETESTS) -> Blame:
    levels = levels_of(seen(shares, alone=alone), Thresholds(), ceiling=ceiling)
    assert levels is not None
    return blame(levels)


def names(found: Blame) -> set[str]:
    return {part if isinstance(part, str) else "".join(part) for part in accused(found)}


# --- the whole procedure on generated matrices: a small version of the tables in docs/pairs.md ----------------------


@pytest.mark.parametrize("noise", [0.01, 0.03])
def test_who_is_slow_is_found_wherever_the_measured_pairs_decide_it(noise: float) -> None:
    found = results(noise, 40, nodes=(4, 6, 16))
    for (kind, nodes), tally in found.items():
        assert tally.decided > 0, (kind, nodes)
    decided = sum(tally.decided for tally in found.values())
    exact = sum(tally.exact for tally in found.values())
    assert exact >= 0.98 * decided
    left = sum(tally.matrices - tally.decided for tally in found.values())
    assert sum(tally.sound for tally in found.values()) >= 0.98 * left > 0


@pytest.mark.parametrize("noise", [0.01, 0.03])
def test_nobody_is_blamed_on_healthy_clusters(noise: float) -> None:
    source = random.Random(5)
    for nodes in (2, 3, 4, 8, 16):
        healthy = make_matrix(source, nodes, bad_nodes=0, bad_links=0, missing=0.0)
        blamed = [accused(judged(healthy, source, noise, Thresholds())) for _ in range(60)]
        assert sum(map(bool, blamed)) == 0


def test_two_and_three_nodes_never_name_what_they_cannot_know() -> None:
    found = results(0.03, 60, nodes=(2, 3))
    for kind, (nodes, links, _) in KINDS.items():
        pair = found[kind, 2]
        assert pair.wronged == 0
        assert pair.decided == (pair.matrices if nodes + links == 0 else 0), kind


@pytest.mark.parametrize("effect", [0.05, 0.10])
def test_a_smaller_effect_blames_nobody_on_noise_of_three_percent(effect: float) -> None:
    source = random.Random(9)
    healthy = make_matrix(source, 12, bad_nodes=0, bad_links=0, missing=0.0)
    blamed = [accused(judged(healthy, source, 0.03, Thresholds(effect=effect))) for _ in range(60)]
    assert sum(map(bool, blamed)) == 0


# --- the rule, case by case ---------------------------------------------------------------------------------------


def test_a_slow_pair_of_two_proven_nodes_has_a_slow_link() -> None:
    assert names(judge({"ab": 1, "ac": 1, "bc": 0.6})) == {"bc"}


def test_one_node_of_three_is_named_after_its_retests_and_not_before() -> None:
    shares = {"ab": 1, "ac": 0.6, "bc": 0.6}
    assert names(judge(shares)) == {"c"}
    once = judge(shares, alone=0)
    assert names(once) == set()
    assert [culprit.node for culprit in once.nodes] == ["c"]
    assert not once.nodes[0].confirmed


def test_two_slow_nodes_of_four_are_named_although_five_of_six_pairs_are_slow() -> None:
    assert names(judge({"ab": 1, "ac": 0.6, "ad": 0.5, "bc": 0.6, "bd": 0.5, "cd": 0.5})) == {"c", "d"}


def test_a_node_of_one_partner_cannot_be_told_from_its_link() -> None:
    found = judge({"ab": 1, "ac": 1, "bc": 1, "cd": 0.5})
    (open_,) = found.undecided
    assert (open_.nodes, open_.links) == (("d",), (("c", "d"),))
    assert open_.settle == (("a", "d"), ("b", "d"))
    assert names(found) == set()


def test_what_would_settle_a_doubt_settles_it() -> None:
    assert names(judge({"ab": 1, "ac": 1, "bc": 1, "cd": 0.5, "ad": 0.5})) == {"d"}
    assert names(judge({"ab": 1, "ac": 1, "bc": 1, "cd": 0.5, "ad": 1.0})) == {"cd"}


def test_one_slow_node_in_the_middle_of_a_chain_explains_both_of_its_pairs() -> None:
    found = judge({"ab": 1, "bc": 0.5, "cd": 0.5})
    assert names(found) == {"c"}
    assert found.hidden == ("d",), "it met a slow partner only"


def test_two_nodes_alone_can_only_blame_their_pair() -> None:
    assert judge({"ab": 0.5}).undecided == (), "there is nothing to compare with"
    (open_,) = judge({"ab": 0.5}, ceiling=50.0).undecided
    assert (open_.nodes, open_.links) == (("a", "b"), (("a", "b"),))


def test_all_slow_against_a_known_ceiling_is_nobodys_fault_in_particular() -> None:
    found = judge({"ab": 0.5, "ac": 0.5, "bc": 0.5}, ceiling=50.0)
    assert names(found) == set()
    assert {node for one in found.undecided for node in one.nodes} == {"a", "b", "c"}


def test_a_slow_link_of_a_slow_node_is_a_fault_of_its_own() -> None:
    found = judge({"ab": 1, "ac": 1, "bc": 1, "ad": 0.6, "bd": 0.6, "cd": 0.3})
    assert names(found) == {"d", "cd"}
    assert found.nodes[0].share == pytest.approx(0.6, abs=0.02)


def test_paths_of_a_node_at_a_fifth_differ_and_none_of_them_is_named_beside_it() -> None:
    """Measured, MB/s: the cables of a and d at 30 of 150 Mbit/s. Between two slow ends a queue runs over less often, so
    that ad is a sixth faster than the others."""
    beside = {"ad": 3.45, "bc": 17.65, "ac": 2.77, "bd": 2.88, "ab": 3.08, "cd": 3.22}
    alone = {"ad": (3.53, 3.53), "ab": (3.09, 2.93), "cd": (2.78, 2.82), "ac": (2.97,), "bc": (17.66, 17.77)}
    observed = [Observation(pair=pair_of(*name), value=value) for name, value in beside.items()]
    for name, values in (alone | {"bd": (3.03, 3.0)}).items():
        observed += [Observation(pair=pair_of(*name), value=value, alone=True) for value in values]
    found = _blame_of(observed)
    assert names(found) == {"a", "d"}
    assert all(node.confirmed for node in found.nodes)


def test_a_link_whose_iterations_stray_as_on_a_lossy_path_is_not_confirmed_by_two_retests() -> None:
    """Measured at 3 % loss, MB/s: c loses packets; with d it reached 13.3 and 14.2 of 17.8 alone, straying widely."""
    beside = {"ad": 15.88, "bc": 14.04, "ac": 15.33, "bd": 17.79, "ab": 15.43, "cd": 14.09}
    alone = {"ad": (17.77,), "ab": (17.66,), "bd": (17.77, 17.56, 17.67), "bc": (16.74, 16.29), "ac": (16.74, 17.72)}
    observed = [Observation(pair=pair_of(*name), value=value, error=0.05) for name, value in beside.items()]
    for name, values in alone.items():
        observed += [Observation(pair=pair_of(*name), value=value, alone=True, error=0.02) for value in values]
    for value, error in ((13.32, 0.133), (14.22, 0.062)):
        observed.append(Observation(pair=("c", "d"), value=value, alone=True, error=error))
    assert names(_blame_of(observed)) == set()


def two_leaves(names: str, across: float = 0.7) -> dict[str, float]:
    first = set(names[: len(names) // 2])
    return {"".join(two): across if len(first & set(two)) == 1 else 1.0 for two in combinations(names, 2)}


def test_a_slow_link_of_a_slow_node_that_was_measured_alone_does_not_keep_the_node_from_being_confirmed() -> None:
    shares = {"".join(two): 0.65 if "e" in two else 1.0 for two in combinations("abcde", 2)} | {"ae": 0.3}
    observed = seen(shares) + [one for one in seen({"ae": 0.3, "be": 0.65, "cd": 1.0}, alone=3) if one.alone]
    assert names(_blame_of(observed)) == {"e", "ae"}


def test_no_node_is_confirmed_before_its_best_pair_was_measured_alone() -> None:
    """Beside others e keeps 0.85 with d, of which nothing else is known; its pairs with a and b are slow links."""
    shares = {"ab": 1.0, "ac": 1.0, "bc": 1.0, "ae": 0.5, "be": 0.5, "de": 0.85, "ad": 0.5, "bd": 0.5}
    observed = seen(shares) + [one for one in seen({"ae": 0.5, "be": 0.5}, alone=3) if one.alone]
    found = _blame_of(observed)
    assert names(found) == set()
    tried = {("a", "e"): 3, ("b", "e"): 3}
    assert ("d", "e") in wanted_retests(found, tried)


def test_many_slow_links_are_two_levels_of_the_fabric_once_a_sample_is_slow_alone() -> None:
    once = judge(two_leaves("abcdef"), alone=0)
    assert (once.split, len(once.crowd.unsampled), once.crowd.lacking) == ((), 9, 8)
    found = judge(two_leaves("abcdef"))
    assert len(found.split) == 9
    assert names(found) == set()


def test_of_many_slow_links_eight_are_measured_alone_from_the_slowest_to_the_fastest_beside_good_pairs() -> None:
    shares = {pair: share - 0.001 * place for place, (pair, share) in enumerate(two_leaves("abcdefghijkl").items())}
    found = judge(shares, alone=0)
    again = wanted_retests(found, {})
    sample = [pair for pair in again if pair in found.crowd.unsampled]
    slow = sorted(found.crowd.unsampled, key=lambda pair: shares["".join(pair)])
    assert len(slow) == 36
    assert [slow.index(pair) for pair in sample] == [0, 5, 10, 15, 20, 25, 30, 35]
    assert len(again) == 8 + 3
    tried = dict.fromkeys(sample[:2], 3) | dict.fromkeys(sample[2:], 1)
    fresh = [pair for pair in wanted_retests(found, tried) if pair in slow and pair not in sample]
    assert len(fresh) == 2, "in place of two that brought no value"


# GB/s on healthy hosts with cables of one rate: beside others, where two cores carry six hosts, and alone.
FIVE_HOSTS = {"ab": 17.1, "ac": 14.8, "ad": 9.6, "ae": 14.0, "bc": 17.4, "bd": 17.3, "be": 17.4, "cd": 17.2, "ce": 17.5,
              "de": 17.4}  # fmt: skip
SIX_HOSTS = {"af": 10.14, "be": 7.99, "cd": 8.88, "ae": 10.6, "df": 9.37, "bc": 10.5, "ad": 11.69, "ce": 10.47,
             "bf": 11.2, "ac": 8.25, "bd": 9.02, "ef": 9.62, "ab": 9.33, "cf": 10.32, "de": 8.81}  # fmt: skip


@pytest.mark.parametrize(("beside", "alone"), [(FIVE_HOSTS, (17.4, 17.8)), (SIX_HOSTS, (11.2, 11.9))])
def test_what_hosts_lose_beside_each_other_is_no_level_of_the_fabric(
    beside: dict[str, float], alone: tuple[float, float]
) -> None:
    source = random.Random(3)
    observed = [Observation(pair=(one[0], one[1]), value=value, error=0.05) for one, value in beside.items()]
    tried: Counter[Pair] = Counter()
    assert not _blame_of(observed).split
    while again := wanted_retests(_blame_of(observed), tried):
        tried.update(again)
        observed += [Observation(pair=pair, value=source.uniform(*alone), alone=True, error=0.01) for pair in again]
        found = _blame_of(observed)
        assert (found.split, [one for one in (*found.nodes, *found.links) if one.confirmed]) == ((), [])
    found = _blame_of(observed)
    assert (found.nodes, found.links, found.undecided, found.crowd.unsampled) == ((), (), (), ())
    assert found.unsteady == ()
    assert all(tried[pair] for pair in [("a", "d"), ("b", "e")] if beside["".join(pair)] < 10)


def _blame_of(observed: list[Observation]) -> Blame:
    levels = levels_of(observed, Thresholds())
    assert levels is not None
    return blame(levels)


def contended(source: random.Random, matrix: Matrix, least: float = 0.5) -> Blame:
    """As the probe measures, where pairs keep so much of their speed beside others at least."""

    def measured(pair: Pair, keeps: float, *, alone: bool) -> Observation:
        value = 50 * matrix.truth[pair] * keeps * (1 + source.gauss(0, 0.01))
        return Observation(pair=pair, value=value, alone=alone, error=0.01 + 0.3 * (1 - keeps))

    observed = [measured(pair, source.uniform(least, 1), alone=False) for pair in matrix.truth]
    tried: Counter[Pair] = Counter()
    while again := wanted_retests(_blame_of(observed), tried):
        tried.update(again)
        observed += [measured(pair, 1.0, alone=True) for pair in again]
    assert tried.total() <= 60
    return _blame_of(observed)


@pytest.mark.parametrize("nodes", [4, 5, 6, 8, 16, 48])
def test_contention_of_a_healthy_tournament_accuses_nobody_whatever_the_number_of_nodes(nodes: int) -> None:
    source = random.Random(nodes)
    for _ in range(20 if nodes < 20 else 3):
        found = contended(source, make_matrix(source, nodes, bad_nodes=0, bad_links=0, missing=0.0))
        assert (found.split, found.crowd.unsampled, found.links, found.nodes) == ((), (), (), ())
        assert not set(found.crowd.contended) & set(found.crowd.sampled)


@pytest.mark.parametrize("nodes", [6, 16])
def test_two_levels_show_through_contention(nodes: int) -> None:
    names = tuple(f"n{index:02d}" for index in range(nodes))
    first = set(names[: nodes // 2])
    truth = {pair_of(*two): 0.5 if len(first & set(two)) == 1 else 1.0 for two in combinations(names, 2)}
    source = random.Random(nodes)
    for _ in range(10):
        found = contended(source, Matrix(nodes=names, truth=truth), least=0.75)
        assert found.split
        assert {len(first & set(pair)) for pair in found.crowd.shown} == {1}
        assert not accused(found)


def test_a_slow_link_is_named_beside_contention_and_so_is_no_other() -> None:
    source = random.Random(8)
    missed = 0
    for _ in range(40):
        matrix = make_matrix(source, 6, bad_nodes=0, bad_links=1, missing=0.0)
        named = accused(contended(source, matrix))
        assert named <= set(matrix.faults)
        missed += not named
    assert missed <= 4


def test_a_fabric_that_slows_when_all_talk_makes_no_retest_look_good() -> None:
    """Together 30 GB/s, alone 50: the slow node's retests reach 30 and are slow all the same."""
    observed = [
        Observation(pair=pair_of(*two), value=30 * (0.6 if "d" in two else 1.0)) for two in combinations("abcd", 2)
    ]
    observed += [
        Observation(pair=pair_of(*two), value=value, alone=True)
        for two, value in (("ab", 50.0), ("ad", 30.0), ("bd", 30.0))
        for _ in range(3)
    ]
    levels = levels_of(observed, Thresholds())
    assert levels is not None
    assert (levels.ceiling, levels.alone) == (30.0, 50.0)
    assert names(blame(levels)) == {"d"}


def test_a_pair_slow_in_the_tournament_and_well_alone_is_unsteady() -> None:
    observed = seen(dict.fromkeys(("ab", "ac", "bc"), 1.0), alone=3)
    observed[4] = Observation(pair=("a", "c"), value=25.0)
    levels = levels_of(observed, Thresholds())
    assert levels is not None
    assert blame(levels).unsteady == (("a", "c"),)


def test_what_all_pairs_lose_beside_each_other_makes_none_of_them_unsteady() -> None:
    """Measured on four hosts whose cores were busy: shares of the wire beside others, and alone."""
    beside = {"ad": 11.62, "bc": 15.97, "ac": 15.12, "bd": 14.71, "ab": 17.68, "cd": 14.51}
    alone = {"bd": 17.69, "cd": 17.71, "ac": 17.72, "ab": 17.75, "bc": 17.59, "ad": 17.48}
    tournament = [
        Observation(pair=(one[0], one[1]), value=value, alone=False, error=0.005) for one, value in beside.items()
    ]
    retests = [
        Observation(pair=(one[0], one[1]), value=value * factor, alone=True, error=0.01)
        for one, value in alone.items()
        for factor in (1.0, 0.998)
    ]
    levels = levels_of([*tournament, *retests], Thresholds())
    assert levels is not None
    assert blame(levels).unsteady == ()


def test_one_pair_of_a_few_that_lost_more_to_busy_cores_than_the_next_is_not_called_unsteady() -> None:
    """Measured on four hosts, one pair of them behind a slow path: MB/s beside others, and alone."""
    beside = {"ad": (17.48, 0.04), "bc": (11.23, 0.07), "ac": (3.14, 0.05), "bd": (17.77, 0.02), "ab": (16.84, 0.05)}
    alone = {"cd": 16.81, "bc": 17.7, "ac": 3.58, "ad": 17.7, "ab": 17.69, "bd": 17.75}
    observed = [
        Observation(pair=pair_of(*name), value=value, error=error)
        for name, (value, error) in (beside | {"cd": (13.19, 0.06)}).items()
    ]
    observed += [
        Observation(pair=pair_of(*name), value=value * factor, alone=True)
        for name, value in alone.items()
        for factor in (1.0, 0.998)
    ]
    found = _blame_of(observed)
    assert (found.unsteady, names(found)) == ((), {"ac"})


def test_a_pair_whose_iterations_strayed_in_the_tournament_is_not_called_unsteady() -> None:
    observed = seen(dict.fromkeys(("ab", "ac", "bc"), 1.0), alone=3)
    for error, unsteady in ((0.2, ()), (0.01, (("a", "c"),))):
        observed[4] = Observation(pair=("a", "c"), value=25.0, error=error)
        levels = levels_of(observed, Thresholds())
        assert levels is not None
        assert blame(levels).unsteady == unsteady


def test_no_value_gives_no_judgement() -> None:
    assert levels_of([], Thresholds()) is None


@pytest.mark.parametrize("value", [0.0, -1.0, float("nan"), float("inf")])
def test_what_is_no_bandwidth_is_refused(value: float) -> None:
    with pytest.raises(ValueError, match="no bandwidth"):
        Observation(pair=("a", "b"), value=value)


# --- laws ---------------------------------------------------------------------------------------------------------

SHARES = st.dictionaries(
    st.sampled_from(["".join(two) for two in combinations("abcdef", 2)]),
    st.sampled_from([0.3, 0.5, 0.8, 1.0]),
    min_size=1,
)


@settings(max_examples=120, deadline=None)
@given(SHARES, st.floats(0.01, 1000))
def test_the_unit_does_not_matter(shares: dict[str, float], unit: float) -> None:
    scaled = [Observation(pair=o.pair, value=o.value * unit, alone=o.alone) for o in seen(shares, alone=2)]
    levels = levels_of(scaled, Thresholds())
    assert levels is not None
    assert names(blame(levels)) == names(judge(shares, alone=2))


@settings(max_examples=120, deadline=None)
@given(SHARES, st.permutations("abcdef"))
def test_the_names_do_not_matter(shares: dict[str, float], order: list[str]) -> None:
    new = dict(zip("abcdef", order, strict=True))
    renamed = {"".join(sorted(new[node] for node in pair)): share for pair, share in shares.items()}
    assert names(judge(renamed)) == {"".join(sorted(new[node] for node in part)) for part in names(judge(shares))}


@settings(max_examples=120, deadline=None)
@given(SHARES)
def test_who_has_a_pair_at_the_ceiling_is_never_blamed(shares: dict[str, float]) -> None:
    top = max(shares.values())
    proven = {node for pair, share in shares.items() if share == top for node in pair}
    found = judge(shares)
    assert not names(found) & proven
    assert not {node for one in found.undecided for node in one.nodes} & proven


@settings(max_examples=120, deadline=None)
@given(SHARES)
def test_retests_come_to_an_end_and_are_of_nodes_that_are_there(shares: dict[str, float]) -> None:
    tried: dict[Pair, int] = {}
    observed = seen(shares)
    nodes = {node for pair in shares for node in pair}
    for _ in range(40):
        levels = levels_of(observed, Thresholds())
        assert levels is not None
        again = wanted_retests(blame(levels), tried)
        if not again:
            return
        for pair in again:
            assert set(pair) <= nodes
            tried[pair] = tried.get(pair, 0) + 1
            if "".join(pair) in shares:
                observed.append(Observation(pair=pair, value=50 * shares["".join(pair)], alone=True))
    pytest.fail(f"still wanted: {again}")


def test_controls_are_good_pairs_that_share_no_node() -> None:
    shares = {"".join(two): 0.5 if "f" in two else 1.0 for two in combinations("abcdef", 2)}
    chosen = controls(judge(shares).levels)
    assert len({node for pair in chosen for node in pair}) == 2 * len(chosen) >= 4
    assert not any("f" in pair for pair in chosen)


# --- capabilities -------------------------------------------------------------------------------------------------


def test_a_capability_is_not_lifted_by_noise_where_the_best_pair_is() -> None:
    source = random.Random(3)
    healthy = make_matrix(source, 16, bad_nodes=0, bad_links=0, missing=0.0)
    ours, best, held = [], [], []
    for _ in range(40):
        found = judged(healthy, source, 0.03, Thresholds())
        assert found is not None
        shares = {pair: level.share for pair, level in found.levels.of.items()}
        for node, able in found.capabilities.items():
            ours.append(able.share)
            best.append(max(share for pair, share in shares.items() if node in pair))
            held.append(able.low <= 1.0 <= able.high)
    assert statistics.fmean(best) > 1.04
    assert abs(statistics.fmean(ours) - 1) < 0.01
    assert statistics.fmean(held) > 0.9


def test_the_interval_of_a_slow_node_holds_its_true_capability() -> None:
    source = random.Random(4)
    pairs = [pair_of(*two) for two in combinations("abcdefgh", 2)]
    slow = Matrix(nodes=tuple("abcdefgh"), truth={p: 0.7 if "h" in p else 1.0 for p in pairs}, faults={"h": 0.7})
    held = 0
    for _ in range(100):
        found = judged(slow, source, 0.02, Thresholds())
        assert found is not None
        (culprit,) = found.nodes
        able = found.levels.ceiling / CEILING
        held += culprit.low * able <= 0.7 <= culprit.high * able
    assert held >= 85
