"""The contract annex: the policy's own numbers in plain words, on one page, and harmless whatever the policy holds."""

import html
import re
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner
from generated_runs import write_run

from hwlottery.cli import cli
from hwlottery.evidence import read_run
from hwlottery.probes import PROBES
from hwlottery.probes.profiles import load_profile
from hwlottery.scoring import load_policy, policy_names, score_run


def annexed(*arguments: str) -> str:
    result = CliRunner().invoke(cli, ["annex", *arguments])
    assert result.exit_code == 0, result.output
    return result.output


def rows(markdown: str) -> list[list[str]]:
    lines = [line for line in markdown.splitlines() if line.startswith("| ") and not line.startswith("| What")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


def test_each_number_of_the_contract_stands_there_with_method_samples_retests_and_days() -> None:
    found = {(row[0], row[1]): row[2:] for row in rows(annexed("--policy", "contract", "--format", "md"))}
    methods = {probe.name: probe.method for probe in PROBES}
    product = found["Speed of matrix products (8192 x 8192 x 8192, bf16, sustained)", "each accelerator"]
    assert product == ["at least 680 TFLOPS", "at least 100", f"matmul {methods['matmul']}", "once", "5"]
    reduced = found["Speed of summing data (all-reduce) (8 GiB)", "each node"]
    assert reduced == ["at least 430 GB/s", "at least 20", f"all\\_reduce {methods['all_reduce']}", "once", "5"]
    assert found["Time to save a checkpoint", "each file system"][0] == "at most 120 s"
    assert found["Nodes delivered", "the cluster"][0] == "at least 16 nodes"
    assert found["Time between failures of a node", "the cluster"] == [
        "at least 200 node-days between failures; fails only where fewer are shown",
        "599 node-days without a failure would prove it", "Poisson bounds, 95 %", "none", "30",
    ]  # fmt: skip


def section(markdown: str, head: str) -> str:
    return markdown.split(f"## {head}\n")[1].split("\n## ", maxsplit=1)[0]


def test_the_annex_says_per_access_tier_what_is_required_and_what_counts_where_it_is_seen(tmp_path: Path) -> None:
    text = annexed("--policy", "contract", "--format", "md")
    told = section(text, "What must be shown from where")
    assert "every access tier (bare-root, bare, vm-root, vm, container-root, container)" in told
    for name in ("no fault is reported by accelerators or links", "Time between failures of a node", "RDMA"):
        assert name.lower() in told.split("Required on none")[1].lower()
        assert name.lower() not in section(text, "What bears no exception").lower()
    required = [check for check in load_policy("contract").checks if check.severity == "required"]
    assert {check.check for check in required if not check.tiers} == {
        "fabric.network", "nics.exact", "health.events", "reliability.mtbf",
    }  # fmt: skip
    file = tmp_path / "mine.yaml"
    file.write_text(
        "name: mine\nextends: contract\nchecks:\n  - {check: health.events, tiers: [bare-root, vm-root]}\n"
        "  - {check: reliability.mtbf, tiers: null}\n"
    )
    text = annexed("--policy", str(file), "--format", "md")
    alone = "Required on bare-root, vm-root alone, and judged elsewhere where it is seen: No fault is reported"
    assert alone in section(text, "What must be shown from where")
    assert {row[0]: row[2] for row in rows(text)}["Time between failures of a node"] == (
        "at least 200 node-days between failures; shown, or not accepted"
    )


def test_what_the_annex_lets_pass_the_verdict_lets_pass(tmp_path: Path) -> None:
    """A tenant in a container who cannot see the kernel log: GO, though health.events is measured on no node."""
    run = read_run(write_run(tmp_path / "run", nodes=4, tier="container-root"))
    verdict = score_run(run)
    events = [finding for finding in verdict.findings if finding.check == "health.events"]
    assert [finding.result for finding in events] == ["not_measured"] * 4
    assert (verdict.verdict, verdict.signable) == ("GO", True)
    told = section(annexed("--policy", "acceptance", "--format", "md"), "What must be shown from where")
    assert "no fault is reported" in told.split("Required on none")[1]


def test_the_profile_is_named_with_the_numbers_that_it_has(tmp_path: Path) -> None:
    found = {
        (row[0].split(" (")[0], row[1]): row[3] for row in rows(annexed("--policy", "acceptance", "--format", "md"))
    }
    acceptance = load_profile("acceptance")
    assert found["Speed of writing to storage", "each file system"] == str(
        acceptance.settings("filesystem", "cuda").repeats
    )
    assert found["Time to save a checkpoint", "each file system"] == str(
        acceptance.settings("checkpoint", "cuda").saves
    )
    assert found["Speed of matrix products", "each accelerator"] == "all in 120 s"
    assert found["Training learns", "the cluster"] == "all in 48 h"
    quick = annexed("--policy", "contract", "--profile", "quick", "--format", "md")
    assert f"the profile **quick** ({load_profile('quick').sha256[:12]})" in quick
    assert "Samples, by profile quick" in quick
    assert "the profile **acceptance**" in annexed("--policy", "contract", "--format", "md")
    file = tmp_path / "mine.yaml"
    file.write_text(load_policy("contract").text.split("\n---\n")[0].replace("name: acceptance", "name: mine"))
    text = annexed("--policy", str(file), "--format", "md")
    assert "as the profile says" in text
    result = CliRunner().invoke(cli, ["annex", "--policy", "contract", "--profile", "quik"])
    assert result.exit_code == 2
    assert "unknown profile 'quik', did you mean quick?" in result.output


@pytest.mark.parametrize("name", policy_names())
def test_every_policy_has_an_annex_with_its_hash_and_whatever_it_requires(name: str) -> None:
    policy = load_policy(name)
    page = html.unescape(annexed("--policy", name))
    assert policy.sha256 in page
    assert "not for signing" in page or policy.signable
    text = annexed("--policy", name, "--format", "md")
    for check in policy.checks:
        contract = check.layers.contract
        if check.severity == "required" and contract and contract.at_least and check.metric != "memory.host_copy":
            assert any(f"{contract.at_least:,.3g}".rstrip("0").split(".")[0] in row[2] for row in rows(text)), (
                check.check
            )


def test_the_terms_are_those_of_the_policy(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(
        "name: mine\nextends: contract\nterms: {buyer: Ada, provider: Bob, nodes: 3, delivery: 2027-02-03,\n"
        "  days_to_cure: 2.5, replacement_hours: 4}\n"
        "checks: [{check: node.count, layers: {contract: {at_least: 3}}}]\n"
    )
    page = annexed("--policy", str(file))
    for told in ("3 nodes", "2027-02-03", "4 hours", "2.5 days", "Ada: place", "Bob: place"):
        assert told in page
    written = tmp_path / "annex.html"
    assert annexed("--policy", str(file), "-o", str(written)) == ""
    assert written.read_text() == page


def test_markup_in_a_policy_is_text_in_the_annex(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    evil = "<script>alert(1)</script> | [x](javascript:alert(1)) `y`"
    file.write_text(f"name: mine\nextends: acceptance\nterms: {{buyer: '{evil}', notes: ['{evil}'], accelerator: '{evil}', nodes: 1}}\n")  # fmt: skip # noqa: E501
    page = annexed("--policy", str(file))
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)" in page
    text = annexed("--policy", str(file), "--format", "md")
    assert not re.search(r"(?<!\\)[<\[`]", text.replace("`hwlottery score RUN`", ""))


def test_a_policy_that_is_none_is_one_line_and_exit_code_2() -> None:
    result = CliRunner().invoke(cli, ["annex", "--policy", "acceptence"])
    assert result.exit_code == 2
    assert result.output.startswith(
        "hwlottery: unknown policy 'acceptence', did you mean acceptance? (choices: acceptance, contract"
    )


@pytest.mark.browser
def test_the_example_contract_prints_on_one_sheet_and_asks_the_network_for_nothing(tmp_path: Path) -> None:
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        pytest.skip("no Chromium: apt-get install chromium")
    page_file = tmp_path / "annex.html"
    annexed("--policy", "contract", "-o", str(page_file))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--headless", "--no-sandbox"])
        page = browser.new_page(viewport={"width": 360, "height": 740})
        asked, complaints = [], []
        page.on("request", lambda request: asked.append(request.url))
        page.on("console", lambda message: complaints.append(message.text))
        page.goto(page_file.as_uri())
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
        assert page.evaluate("getComputedStyle(document.querySelector('table')).borderCollapse") == "collapse"
        content = page.pdf(format="A4", prefer_css_page_size=True)
        browser.close()
    assert len(re.findall(rb"/Type\s*/Page[^s]", content)) == 1
    assert [url for url in asked if not url.startswith(("file:", "data:"))] == []
    assert complaints == []
