"""Which hosts reach which: who is named, when hosts do not reach each other."""

import pytest

from hwlottery.runner.doctor_ports import port_problems

HOSTS = ["a", "b", "c", "d"]


def named(*shut):
    """The names of the problems when these connections, such as "ab" for a to b, fail."""
    unreached = {host: {pair[1]: "timed out" for pair in shut if pair[0] == host} for host in HOSTS}
    return {advice.name: advice.detail for found in port_problems(unreached).values() for advice in found}


def test_hosts_that_all_reach_each_other_have_no_problem():
    assert named() == {}


def test_a_host_that_nobody_reaches_is_named_alone():
    assert named("ab", "cb", "db") == {"b: ports": "no other host reaches it: timed out"}


def test_a_host_that_reaches_nobody_is_named_alone():
    assert named("ba", "bc", "bd") == {"b: ports to hosts": "reaches no other host: timed out"}


def test_a_host_cut_off_both_ways_is_the_only_one_named():
    assert set(named("ba", "bc", "bd", "ab", "cb", "db")) == {"b: ports", "b: ports to hosts"}


@pytest.mark.parametrize("pair", ["ab", "dc"])
def test_a_single_pair_is_named_with_its_direction(pair):
    assert named(pair) == {f"{pair[0]}: ports to hosts": f"does not reach {pair[1]}: timed out"}


def test_where_nobody_reaches_anybody_each_is_named_once():
    assert set(named(*(a + b for a in HOSTS for b in HOSTS if a != b))) == {f"{host}: ports" for host in HOSTS}


def test_of_two_hosts_both_are_named_for_it_may_be_either():
    (advice,) = port_problems({"a": {"b": "timed out"}, "b": {}})["a"]
    assert (advice.name, advice.detail) == ("a: ports to hosts", "does not reach b: timed out")


def test_one_host_alone_has_no_other_to_reach():
    assert port_problems({"a": {}}) == {}
