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
        (["leave_out: [matmul.rte]"], "leave_out: names checks of acceptance (choices: evidence.complete, "),
        (["leave_out: matmul.rate"], "leave_out: "),
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
    with pytest.raises(PolicyError, match=r"terms.node: unknown key \(choices: buyer, provider, nodes"):
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
    with pytest.raises(PolicyError, match=r"unknown policy 'smok' \(choices: acceptance, contract, prolog, quick, "):
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
    for policy in policy_names():
        for check in load_policy(policy).checks:
            assert explain(check.check).lines


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
