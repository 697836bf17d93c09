"""Policies: data that cannot do harm, refused in one line where wrong."""

import hashlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hwlottery.evidence import TIERS, metric
from hwlottery.scoring import Policy, PolicyError, load_policy, policy_from_text, policy_names
from hwlottery.scoring.derived import DERIVABLE
from hwlottery.scoring.explain import UnknownName, explain

EVIDENCE = "{check: whole, rule: evidence.complete, each: cluster, category: evidence}"


def policy_with(check: str, **more: str) -> str:
    lines = "".join(f"{key}: {value}\n" for key, value in more.items())
    return f"name: mine\nsignable: false\n{lines}checks:\n  - {EVIDENCE}\n  - {check}\n"


def refusal(text: str) -> str:
    with pytest.raises(PolicyError) as error:
        policy_from_text(text, "mine.yaml")
    message = str(error.value)
    assert "\n" not in message
    assert message.startswith("mine.yaml: ")
    return message


@pytest.mark.parametrize("name", policy_names())
def test_the_policies_load_and_carry_their_text(name: str) -> None:
    policy = load_policy(name)
    assert policy.name == name
    assert policy.sha256 == hashlib.sha256(policy.text.encode()).hexdigest()
    assert policy.signable == (name in ("quick", "acceptance", "contract"))
    assert policy == policy_from_text(policy.text, name)


@pytest.mark.parametrize("name", policy_names())
def test_every_derived_metric_that_is_demanded_can_be_computed(name: str) -> None:
    for check in load_policy(name).checks:
        if check.metric and metric(check.metric).derived:
            assert check.metric in DERIVABLE


@pytest.mark.parametrize("name", policy_names())
def test_what_needs_correct_results_is_demanded_in_every_policy_and_not_undone_by_a_retest(name: str) -> None:
    checks = {check.metric: check for check in load_policy(name).checks if check.any_attempt}
    for wrong in ("matmul.mismatches", "matmul.nonfinite", "all_reduce.wrong_elements"):
        assert checks[wrong].severity == "required"


def test_a_failure_says_what_to_do_and_what_to_send() -> None:
    for name in policy_names():
        for check in load_policy(name).checks:
            if check.excludable or check.layers.contract or check.layers.reference:
                assert check.statement or check.rule == "run.length", (name, check.check)


@pytest.mark.parametrize(
    ("check", "told"),
    [
        ("{check: a, metric: matmul.tflop, each: accelerator, category: compute}", "did you mean matmul.tflops"),
        ("{check: a, metric: memory.copy, each: gpu, category: memory}", "'cluster', 'node'"),
        ("{check: a, metric: memory.copy, each: accelerator, category: speed}", "checks.1 (a).category"),
        ("{check: a, metric: memory.copy, each: cluster, category: memory}", "not measured for each cluster"),
        ("{check: a, metric: memory.copy, each: accelerator, category: memory, sevrity: warn}", "severity"),
        ("{check: a, metric: memory.copy, fact: x, each: accelerator, category: memory}", "exactly one of"),
        ("{check: a, each: accelerator, category: memory}", "exactly one of"),
        ("{check: a, rule: node.good, each: node, category: memory}", "node.responds"),
        ("{check: a, fact: x, each: node, category: memory, tiers: [root]}", "bare-root"),
        ("{check: a, metric: memory.copy, each: accelerator, category: memory, weight: 1}", "reference layer"),
        (
            "{check: a, metric: memory.copy, each: accelerator, category: memory, layers: {contract: {}}}",
            "give one of at_least",
        ),
        (
            "{check: a, metric: memory.copy, each: node, category: memory, layers: {contract: {at_least: .nan}}}",
            "'.nan' is no finite number",
        ),
        (
            "{check: a, metric: memory.copy, each: accelerator, category: memory, layers: {contract: {min: 3}}}",
            "choices: at_least",
        ),
        ("{check: a, fact: x, each: node, category: memory, statement: '$subject.__class__ $pid'}", "unknown $pid"),
        ("{check: whole, fact: x, each: node, category: memory}", "stands twice"),
        ("{check: a, fact: x, each: node, category: software, layers: {peers: {}}}", "layer peers says nothing of x"),
        (
            "{check: a, fact: x, each: node, category: software, layers: {reference: {fail: 0.9}}}",
            "(choices: contract, uniform)",
        ),
        (
            "{check: a, metric: memory.copy, each: accelerator, category: memory, layers: {uniform: {}}}",
            "layer uniform says nothing of memory.copy",
        ),
        (
            "{check: a, metric: memory.copy, each: accelerator, category: memory, layers: {maximum: {}}}",
            "layer maximum is for topology.pcie_width",
        ),
        (
            "{check: a, metric: memory.copy, each: accelerator, category: memory, layers: {baseline: {}, peers: {}}}",
            "give warn or fail",
        ),
        ("{check: a, rule: run.length, each: cluster, category: evidence}", "run.length needs a contract"),
        ("{check: a, rule: node.count, each: cluster, category: evidence}", "{at_least: NODES}"),
        (
            "{check: a, rule: reliability.mtbf, each: cluster, category: health, layers: {contract: {at_most: 3}}}",
            "{at_least: NODE-DAYS}",
        ),
        (
            "{check: a, rule: reliability.mtbf, each: cluster, category: health, "
            "layers: {contract: {at_least: 3, warn_at_least: 4}}}",
            "says at_least alone",
        ),
        (
            "{check: a, fact: x, each: node, category: software, samples_at_least: 3}",
            "samples_at_least is for a metric",
        ),
        ("{check: a, fact: x, each: node, category: software, days_to_cure: 0}", "checks.1 (a).days_to_cure"),
        ("{check: a, rule: node.responds, each: cluster, category: evidence}", "node.responds is for each node"),
        ("{check: a, rule: health.events, each: filesystem, category: health}", "health.events is for each node"),
        (
            "{check: a, rule: node.responds, each: node, category: evidence, layers: {peers: {}}}",
            "layer peers says nothing of node.responds",
        ),
        (
            "{check: a, fact: x, each: node, category: software, layers: {contract: {at_most: 5, at_least: 9}}}",
            "at_least 9 is above at_most 5",
        ),
        (
            "{check: a, fact: x, each: node, category: software, layers: {contract: {equals: 3, at_least: 9}}}",
            "equals stands alone",
        ),
        (
            "{check: a, metric: memory.copy, each: accelerator, category: memory, where: {bytes: []}}",
            "checks.1 (a).where.bytes: an empty list asks for nothing",
        ),
        (
            "{check: a, metric: memory.copy, each: accelerator, category: memory, where: {bytes: {}}}",
            "checks.1 (a).where.bytes: give at_least or at_most",
        ),
        (
            "{check: a, metric: memory.copy, each: accelerator, category: memory, "
            "where: {m: {at_least: 9, at_most: 1}}}",
            "nothing is between them",
        ),
    ],
)
def test_a_wrong_policy_is_told_in_one_line_with_file_key_and_choices(check: str, told: str) -> None:
    assert told in refusal(policy_with(check))


def extending(*lines: str, base: str = "acceptance") -> str:
    return "\n".join(["name: mine", f"extends: {base}", *lines]) + "\n"


def loaded(tmp_path: Path, text: str) -> Policy:
    file = tmp_path / "mine.yaml"
    file.write_text(text)
    return load_policy(file)


def test_a_policy_that_extends_another_changes_what_it_names_and_nothing_else(tmp_path: Path) -> None:
    base = {check.check: check for check in load_policy("acceptance").checks}
    mine = loaded(
        tmp_path,
        extending(
            "leave_out: [burn_in.step]",
            "checks:",
            "  - {check: matmul.rate, weight: 9, layers: {contract: {at_least: 700}, baseline: null}}",
            "  - {check: all_reduce.rate, device: null}",
            "  - {check: same.kernel.too, fact: software.kernel, each: node, category: software}",
        ),
    )
    checks = {check.check: check for check in mine.checks}
    assert (mine.name, mine.signable, mine.exclude_at_most) == ("mine", True, 0.10)
    assert [*checks] == [name for name in base if name != "burn_in.step"] + ["same.kernel.too"]
    assert checks["matmul.rate"].weight == 9
    assert checks["matmul.rate"].layers.given == ("contract", "reference", "peers")
    assert checks["matmul.rate"].layers.reference == base["matmul.rate"].layers.reference
    assert (base["all_reduce.rate"].device, checks["all_reduce.rate"].device) == ("cuda", None)
    same = set(base) - {"burn_in.step", "matmul.rate", "all_reduce.rate"}
    assert all(checks[name] == base[name] for name in same)


def test_the_text_of_an_extending_policy_travels_whole_and_judges_alike_elsewhere(tmp_path: Path) -> None:
    mine = loaded(tmp_path, "# my own\n---\n" + extending("checks: [{check: matmul.rate, weight: 9}]", base="quick"))
    assert mine.text.startswith(load_policy("acceptance").text.rstrip())
    assert mine.text.count("\n---\n") == 3
    assert policy_from_text(mine.text, "run.json policy") == mine
    assert mine.checks != load_policy("quick").checks


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        (
            ["leave_out: [matmul.rte]"],
            "leave_out: a list of checks of acceptance, not matmul.rte, did you mean matmul.rate? (choices: evidence.c",
        ),
        (["leave_out: matmul.rate"], "leave_out: a list of checks of acceptance, not matmul.rate"),
        (
            ["exclude_at_mots: 0.2"],
            "exclude_at_mots: unknown key, did you mean exclude_at_most? (choices: name, purpose, signable, "
            "exclude_at_most, terms, checks, extends, leave_out)",
        ),
        (["checks: {}"], "checks: a list of checks"),
        (["checks: [{metric: memory.copy}]"], "check: NAME"),
        (["checks: [{check: a}, {check: a}]"], "check a stands twice"),
        (
            ["checks: [{check: matmul.rate, layers: {contract: {min: 3}}}]"],
            "(matmul.rate).layers.contract.min: unknown",
        ),
        (["checks: [{check: matmul.rate, metric: null}]"], "(matmul.rate): give exactly one of metric, fact, rule"),
        (["leave_out: [node.responds]"], "no required check with rule: node.responds"),
        (["leave_out: [evidence.complete]"], "evidence.complete"),
    ],
)
def test_what_is_wrong_in_an_extending_policy_is_told_in_one_line(
    tmp_path: Path, lines: list[str], told: str
) -> None:  # fmt: skip
    with pytest.raises(PolicyError) as error:
        loaded(tmp_path, extending(*lines))
    assert str(error.value).startswith("mine.yaml: ")
    assert told in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("base", ["/etc/passwd", "../quick.yaml", "mine", "null_", "[a]"])
def test_only_policies_that_come_with_hwlottery_can_be_extended(tmp_path: Path, base: str) -> None:
    with pytest.raises(PolicyError, match=r"extends: unknown policy .* \(choices: acceptance, "):
        loaded(tmp_path, extending(base=base))


def test_a_text_that_came_without_the_one_it_extends_is_refused() -> None:
    assert "whose text does not stand before it" in refusal(extending())
    assert "extends the one before it" in refusal(f"name: a\nchecks: []\n---\n{extending(base='b')}")
    assert "extends the one before it" in refusal("name: a\nchecks: []\n---\n- list\n")


def test_the_terms_of_a_policy_are_checked_too(tmp_path: Path) -> None:
    assert load_policy("contract").terms.nodes == 16
    assert loaded(tmp_path, extending()).terms.nodes is None
    with pytest.raises(
        PolicyError, match=r"terms.node: unknown key, did you mean nodes\? \(choices: buyer, provider, nodes"
    ):
        loaded(tmp_path, extending("terms: {node: 3}"))
    with pytest.raises(PolicyError, match=r"terms\.delivery"):
        loaded(tmp_path, extending("terms: {delivery: soon}"))


RESPONDS = "{check: n, rule: node.responds, each: node, category: evidence}"
PRODUCTS = "{check: p, metric: matmul.tflops, each: accelerator, category: compute}"
COPIES = "{check: c, metric: memory.copy, each: accelerator, category: memory}"


@pytest.mark.parametrize(
    ("checks", "told"),
    [
        ((EVIDENCE,), "node.responds"),
        ((EVIDENCE, PRODUCTS), "node.responds"),
        ((EVIDENCE, RESPONDS), "matmul, all_reduce or burn_in"),
        ((EVIDENCE, RESPONDS, COPIES), "matmul, all_reduce or burn_in"),
        ((EVIDENCE, RESPONDS, PRODUCTS.replace("}", ", severity: warn}")), "matmul, all_reduce or burn_in"),
        ((EVIDENCE, RESPONDS, PRODUCTS.replace("}", ", tiers: []}")), "matmul, all_reduce or burn_in"),
        ((EVIDENCE, RESPONDS, PRODUCTS.replace("}", ", nodes_at_least: 9}")), "matmul, all_reduce or burn_in"),
        ((EVIDENCE, RESPONDS.replace("}", ", device: cpu}"), PRODUCTS), "node.responds"),
    ],
)
def test_a_policy_that_could_sign_without_any_proof_is_refused(checks: tuple[str, ...], told: str) -> None:
    text = "name: lax\nchecks:\n" + "".join(f"  - {check}\n" for check in checks)
    assert told in refusal(text)
    assert not policy_from_text(text.replace("name: lax", "name: lax\nsignable: false"), "mine.yaml").signable


def test_the_least_that_can_be_signed_loads() -> None:
    assert policy_from_text(f"name: mine\nchecks: [{EVIDENCE}, {RESPONDS}, {PRODUCTS}]\n", "mine.yaml").signable


@pytest.mark.parametrize("share", ["true", "-0.1", "0.6"])
def test_a_share_of_nodes_is_a_number(share: str) -> None:
    assert "exclude_at_most" in refusal(policy_with(RESPONDS, exclude_at_most=share))


@pytest.mark.parametrize("share", [".nan", ".inf", "9" * 30])
def test_a_number_that_compares_with_nothing_is_refused(share: str) -> None:
    assert "is no finite number" in refusal(policy_with(RESPONDS, exclude_at_most=share))


def test_explain_tells_sizes_as_sizes_and_what_is_possible() -> None:
    assert any("at least 32 GiB" in line for line in explain("limits.memlock").lines)
    assert any("at least 8 GiB" in line for line in explain("limits.shared_memory").lines)
    assert "Possible: a whole number, at least 0; anything else is not measured." in explain("matmul.mismatches").lines


def test_an_unknown_policy_names_the_choices(tmp_path: Path) -> None:
    with pytest.raises(
        PolicyError,
        match=r"unknown policy 'smok', did you mean smoke\? \(choices: acceptance, contract, prolog, quick, ",
    ):
        load_policy("smok")
    with pytest.raises(PolicyError, match=r"none\.yaml: cannot be read"):
        load_policy(tmp_path / "none.yaml")


@pytest.mark.parametrize(
    "first",
    [
        "{check: n, rule: node.responds, each: node, category: evidence}",
        "{check: whole, rule: evidence.complete, each: cluster, category: evidence, severity: warn}",
        "{check: whole, rule: evidence.complete, each: node, category: evidence}",
        "{check: whole, rule: evidence.complete, each: cluster, category: evidence, device: cuda}",
        "{check: whole, rule: evidence.complete, each: cluster, category: evidence, tiers: [bare-root]}",
        "{check: whole, rule: evidence.complete, each: cluster, category: evidence, nodes_at_least: 9}",
    ],
)
def test_a_policy_without_whole_evidence_is_refused(first: str) -> None:
    assert "evidence.complete" in refusal(f"name: lax\nchecks: [{first}]\n")


COPY = "{check: a, metric: memory.copy, each: accelerator, category: memory, layers: {%s}}"


@pytest.mark.parametrize(
    ("layers", "told"),
    [
        ("reference: {fail: 5, warn: 0.1}", "fail: should be a share, above 0 and at most 1 (0.9 is 90 %), not 5"),
        ("reference: {fail: 90}", "reference.fail: should be a share, above 0 and at most 1 (0.9 is 90 %), not 90"),
        ("reference: {fail: 0}", "reference.fail: should be a share, above 0"),
        ("reference: {warn: -0.5}", "reference.warn: should be a share, above 0"),
        ("reference: {fail: true}", "reference.fail: should be a number, not true"),
        ("reference: {fail: .inf}", "'.inf' is no finite number"),
        ("reference: {fail: 0.9, warn: 0.9}", "reference: warn 0.9 is not above fail 0.9: it could never warn"),
        ("reference: {fail: 0.9, warn: 0.8}", "reference: warn 0.8 is not above fail 0.9: it could never warn"),
        ("reference: {fail: 1.2}", "reference: fail 1.2: should be a share of at most 1"),
        ("reference: {of: peak, warn: 1.2}", "reference: warn 1.2: should be a share of at most 1"),
        ("reference: {of: floor, warn: 1.2, fail: 1.5}", "reference: warn 1.2 is not above fail 1.5"),
        ("reference: {fail: 0.9, or_peak_fail: 0.6, or_peak_warn: 0.5}", "or_peak_warn 0.5 is not above or_peak_fail"),
        ("reference: {of: peak, fail: 0.9, or_peak_fail: 0.6}", "for another kind than the peak"),
        ("baseline: {fail: 5}", "baseline.fail: should be a share"),
        ("baseline: {fail: 1.5}", "baseline: fail 1.5: should be a share of at most 1"),
        ("baseline: {fail: 0.9, warn: 0.9}", "baseline: warn 0.9 is not above fail 0.9"),
        ("contract: {at_least: 600, warn_at_least: 500}", "contract: warn_at_least 500 is not above at_least 600"),
        ("contract: {at_least: 600, warn_at_least: 600}", "contract: warn_at_least 600 is not above at_least 600"),
        ("contract: {at_most: 600, warn_at_most: 700}", "contract: warn_at_most 700 is not below at_most 600"),
        ("contract: {at_least: -600}", "contract.at_least: should be what memory.copy can be in GB/s (at least 1e-09"),
        ("contract: {at_least: 0}", "contract.at_least: should be what memory.copy can be in GB/s"),
        ("contract: {at_least: 1.0e+12}", "at most 1e+06), not 1e+12"),
        ("contract: {at_least: true}", "contract.at_least: should be a number, not true"),
        ("contract: {at_least: many}", "contract.at_least: should be a number, not 'many'"),
        ("contract: {at_least: {a: 1}}", "contract.at_least: should be a number, not keys with values"),
        ("contract: [600]", "layers.contract: should be keys with values (key: value), not a list"),
        ("contract: {at_lest: 600}", "unknown key, did you mean at_least? (choices: at_least, at_most, equals"),
        ("peers: {effect: 5}", "peers.effect: should be less than 1, not 5"),
        ("peers: {effect: 0}", "peers.effect: should be greater than 0, not 0"),
        ("peers: {sigmas: 0.5}", "peers.sigmas: should be greater than or equal to 1, not 0.5"),
        ("peers: {within: rack}", "peers.within: should be 'node' or 'cluster', not 'rack'"),
    ],
)  # fmt: skip
def test_a_layer_that_could_say_nothing_or_accuses_all_is_refused_with_its_key_and_what_is_allowed(
    layers: str, told: str
) -> None:
    found = refusal(policy_with(COPY % layers))
    assert told in found
    assert "checks.1 (a)" in found or "line" in found


@pytest.mark.parametrize(
    "layers",
    [
        "reference: {of: floor, fail: 1.2, warn: 1.5}", "reference: {of: peak, fail: 1.0}", "baseline: {warn: 1.0}",
        "contract: {at_least: 600, warn_at_least: 700}", "contract: {at_least: 600, at_most: 900}",
        "reference: {warn: 0.95, fail: 0.9, or_peak_warn: 0.6}", "peers: {effect: 0.5, sigmas: 1}",
    ],
)  # fmt: skip
def test_a_layer_that_can_be_met_and_missed_loads(layers: str) -> None:
    assert policy_from_text(policy_with(COPY % layers), "mine.yaml").checks[1].layers.given


@pytest.mark.parametrize(
    ("check", "told"),
    [
        ("metric: matmul.mfu, each: accelerator, layers: {contract: {at_least: 85}}", "matmul.mfu can be in share"),
        ("metric: health.throttled, each: accelerator, layers: {contract: {at_most: -1}}", "at_most: should be"),
        ("rule: node.count, each: cluster, layers: {contract: {at_least: 0}}", "what node.count can be"),
        ("rule: reliability.mtbf, each: cluster, layers: {contract: {at_least: -200}}", "what reliability.mtbf can be"),
        ("rule: run.length, each: cluster, layers: {contract: {at_least: 0}}", "what run.length can be (above 0"),
        ("rule: rails.wire, each: cluster, layers: {contract: {at_least: 85}}", "what rails.wire can be"),
        ("fact: x, each: node, weight: -1", "weight: should be greater than or equal to 0, not -1"),
        ("fact: x, each: node, days_to_cure: 0", "days_to_cure: should be greater than 0, not 0"),
        ("fact: x, each: node, ranks_at_least: 0", "ranks_at_least: should be greater than or equal to 1"),
        ("fact: x, each: node, ranks_at_least: true", "ranks_at_least: should be a number, not true"),
        ("metric: memory.copy, each: accelerator, samples_at_least: 1.5", "samples_at_least: should be a whole number"),
    ],
)  # fmt: skip
def test_a_number_that_nothing_measured_can_be_is_refused(check: str, told: str) -> None:
    assert told in refusal(policy_with(f"{{check: a, category: health, {check}}}"))


@pytest.mark.parametrize(
    ("terms", "told"),
    [
        ("nodes: 0", "terms.nodes: should be greater than or equal to 1, not 0"),
        ("nodes: many", "terms.nodes: should be a whole number, not 'many'"),
        ("nodes: true", "terms.nodes: should be a number, not true"),
        ("replacement_hours: -3", "terms.replacement_hours: should be greater than 0"),
        ("replacement_hours: 1000000000", "terms.replacement_hours: should be less than or equal to 87600"),
        ("days_to_cure: 0", "terms.days_to_cure: should be greater than 0"),
        ("delivery: soon", "terms.delivery: should be a date such as 2027-01-31, not 'soon'"),
        ("delivery: 9999-01-01", "terms.delivery: should be less than or equal to 2200-01-01"),
        ("nodes: 4", "node.count asks for 16 nodes, terms.nodes says that 4 were bought"),
    ],
)
def test_terms_that_nobody_could_keep_are_refused(tmp_path: Path, terms: str, told: str) -> None:
    with pytest.raises(PolicyError) as error:
        loaded(tmp_path, extending(f"terms: {{{terms}}}", base="contract"))
    assert told in str(error.value)


def test_leave_out_and_an_empty_file_are_told_in_words_of_the_file() -> None:
    assert "leave_out: is for a policy that extends another" in refusal(policy_with(RESPONDS, leave_out="[a]"))
    told = refusal("")
    assert told == (
        "mine.yaml: it is empty (keys: name, purpose, signable, exclude_at_most, terms, checks, extends, leave_out)"
    )
    assert refusal("- a\n- b\n") == "mine.yaml: the file: should be keys with values (key: value), not a list"
    assert "unknown key (choices: name, purpose, signable, exclude_at_most, terms, checks, extends, leave_out)" in (
        refusal(policy_with(RESPONDS, foo="1"))
    )
    told = refusal(policy_with(RESPONDS.replace("evidence}", "fabrik}")))
    assert "category: should be 'evidence', 'compute'" in told
    assert told.endswith("not 'fabrik', did you mean fabric?")


@pytest.mark.parametrize(
    "text",
    [
        "a: &a [x, x]\nb: [*a, *a]\n",
        "!!python/object/apply:os.system ['true']\n",
        "[" * 40 + "]" * 40,
        "x: " + "y" * 300_000,
        "a: [" + "1," * 30_000 + "]",
        "\x00",
        "- just\n- a list\n",
        "",
    ],
)
def test_yaml_that_could_do_harm_is_refused(text: str) -> None:
    assert refusal(text)


@settings(max_examples=200)
@given(st.text(max_size=300) | st.binary(max_size=300).map(lambda raw: raw.decode("latin-1")))
def test_any_text_is_a_policy_or_a_one_line_refusal(text: str) -> None:
    try:
        policy_from_text(text, "mine.yaml")
    except PolicyError as error:
        told = str(error)
    else:
        told = "mine.yaml: fine"
    assert told.startswith("mine.yaml: ")
    assert "\n" not in told


def test_a_tier_that_is_not_named_is_every_tier() -> None:
    assert all(set(check.tiers) in (set(TIERS), set()) for check in load_policy("acceptance").checks)


def test_explain_knows_metrics_checks_and_accelerators() -> None:
    assert explain("matmul.mfu").kind == "metric"
    assert "Unit: share. Higher is better." in explain("matmul.mfu").lines
    assert any("below 90 %" in line for line in explain("matmul.rate").lines)
    assert explain("NVIDIA H200").title == explain("h200-sxm-141").title == "h200-sxm-141"
    assert "stas00/ml-engineering" in explain("h200-sxm-141").source
    for check in {check.check for policy in policy_names() for check in load_policy(policy).checks}:
        assert explain(check).lines


def test_explain_names_the_nearest_of_an_unknown_name() -> None:
    with pytest.raises(UnknownName, match=r"'matmul.tflop': did you mean matmul.tflops"):
        explain("matmul.tflop")


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("H200", ["h200-sxm-141"]),
        ("h20", ["h20-96"]),
        ("NVIDIA H100 80GB HBM3", ["h100-sxm-80"]),
        ("H100", ["h100-sxm-80", "h100-pcie-80", "h100-nvl-94"]),
    ],
)
def test_an_accelerator_is_explained_by_the_name_that_people_use(name, kinds):
    explanation = explain(name)
    shown = [explanation.title] if len(kinds) == 1 else [line.partition(":")[0] for line in explanation.lines]
    assert shown == kinds
