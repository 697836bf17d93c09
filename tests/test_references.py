"""References: the right accelerator or none, each value with its source, and errors that name file and key."""

import hashlib

import pytest
import yaml

from hwlottery.evidence import metric
from hwlottery.references import Fabric, Network, ReferenceFileError, references_of, shipped, with_own
from hwlottery.references.loading import FOLDER

H100_BYTES, H200_BYTES, H20_BYTES = 85_024_112_640, 150_754_820_096, 102_625_181_696


@pytest.mark.parametrize(
    ("name", "memory", "watts", "key"),
    [
        ("NVIDIA H100 80GB HBM3", H100_BYTES, 700.0, "h100-sxm-80"),
        ("NVIDIA H100 PCIe", 85_520_809_984, 350.0, "h100-pcie-80"),
        ("NVIDIA H100 NVL", 100_485_038_080, 400.0, "h100-nvl-94"),
        ("NVIDIA H200", H200_BYTES, 700.0, "h200-sxm-141"),
        ("NVIDIA H20", H20_BYTES, 500.0, "h20-96"),
        ("NVIDIA A100-SXM4-40GB", 42_405_855_232, 400.0, "a100-sxm-40"),
        ("NVIDIA A100-SXM4-80GB", 85_050_195_968, 400.0, "a100-sxm-80"),
        ("NVIDIA L40S", 48_305_799_168, 350.0, "l40s"),
        ("nvidia  b200", 192_265_846_784, 1000.0, "b200-sxm-180"),
    ],
)
def test_known_accelerators_are_found(name: str, memory: int, watts: float, key: str) -> None:
    found = shipped().accelerator(name, memory, watts)
    assert found is not None
    assert found.key == key


@pytest.mark.parametrize(
    ("name", "memory", "watts"),
    [
        ("NVIDIA H200 NVL", H200_BYTES, 600.0),  # not the SXM part
        ("NVIDIA H100", H100_BYTES, 700.0),  # part of a name is no name
        ("H200", H200_BYTES, 700.0),
        ("NVIDIA H100 80GB HBM3", 102_000_000_000, 500.0),  # the 96 GB part that runs at 500 W
        ("NVIDIA H100 80GB HBM3", H100_BYTES, 500.0),  # capped
        ("NVIDIA H100 80GB HBM3", None, 700.0),  # its memory is not known
        ("NVIDIA H20", H200_BYTES, 500.0),
        ("NVIDIA GeForce RTX 9999", 24 * 2**30, 450.0),
        ("", 0, 0.0),
    ],
)
def test_an_unknown_accelerator_has_no_reference(name: str, memory: int | None, watts: float) -> None:
    assert shipped().accelerator(name, memory, watts) is None


def test_a_power_limit_that_cannot_be_read_gets_the_full_power_reference() -> None:
    found = shipped().accelerator("NVIDIA H200", H200_BYTES, None)
    assert found is not None
    assert found.power_limit_w == 700


def test_every_value_has_a_source_and_a_known_metric() -> None:
    for accelerator in shipped().accelerators:
        for value in accelerator.values:
            assert shipped().source(accelerator, value).name, accelerator.key
            assert metric(value.metric).better == "higher", "shares of these are value / reference"


@pytest.mark.parametrize("name", ["accelerators.yaml", "fabrics.yaml"])
def test_each_value_is_cited_as_its_own_file_cites_it_whatever_other_files_call_their_sources(name: str) -> None:
    written = yaml.safe_load((FOLDER / name).read_text())
    listed = written["accelerators" if name.startswith("acc") else "fabrics"]
    known = {entry.key: entry for entry in (*shipped().accelerators, *shipped().fabrics)}
    for entry in listed:
        for value, plain in zip(known[entry["key"]].values, entry["values"], strict=True):
            found = shipped().source(known[entry["key"]], value)
            assert found.model_dump() == written["sources"][plain["source"]], entry["key"]


def test_a_users_source_of_the_name_of_ours_is_that_of_the_users_values_alone() -> None:
    own = """
sources: {MLE: {name: EVIL-BLOG, at: nowhere, date: 2020-01-01}}
accelerators:
  - {key: mine, names: [Mine 1], values: [{metric: memory.copy, kind: peak, value: 9, source: MLE},
                                          {metric: memory.triad, kind: peak, value: 9, source: TT}]}
"""
    mine = with_own(own, "own.yaml")
    for entry in (*shipped().accelerators, *shipped().fabrics):
        for value in entry.values:
            assert mine.source(entry, value) == shipped().source(entry, value)
    found = next(entry for entry in mine.accelerators if entry.key == "mine")
    assert [mine.source(found, value).name for value in found.values] == ["EVIL-BLOG", "pytorch/torchtitan"]


@pytest.mark.parametrize("key", ["a100-sxm-80", "h100-sxm-80", "h200-sxm-141"])
def test_what_acceptance_needs_of_a_reference_is_there_for_the_kinds_that_it_names(key: str) -> None:
    kind = next(kind for kind in shipped().accelerators if kind.key == key)
    reduced = kind.value("all_reduce.busbw", {"ranks": 8, "bytes": 8_589_934_592}, "peak")
    assert reduced is not None
    for name, of in (
        ("memory.copy", "peak"),
        ("memory.host_to_device", "floor"),
        ("memory.device_to_host", "floor"),
        ("topology.nvlinks_active", "peak"),
    ):
        assert kind.value(name, {}, of) is not None, name  # type: ignore[arg-type]
    assert kind.value("matmul.tflops", {"dtype": "bf16"}, "peak") is not None


def test_names_belong_to_one_entry_each_unless_memory_or_power_tells_them_apart() -> None:
    seen: set[tuple[str, float | None, float | None]] = set()
    for accelerator in shipped().accelerators:
        for name in accelerator.names:
            key = (name, accelerator.memory_gb, accelerator.power_limit_w)
            assert key not in seen
            seen.add(key)


def test_no_achievable_value_is_above_its_peak_but_where_switches_reduce() -> None:
    for accelerator in shipped().accelerators:
        for value in accelerator.values:
            peak = accelerator.value(value.metric, dict(value.where), "peak")
            if value.kind == "achievable" and peak and value.metric != "all_reduce.busbw":
                assert value.value <= peak.value, accelerator.key


def test_a_value_is_taken_only_for_the_params_it_was_measured_with() -> None:
    h100 = shipped().accelerator("NVIDIA H100 80GB HBM3", H100_BYTES, 700.0)
    assert h100 is not None
    shape: dict[str, bool | int | float | str] = {"dtype": "bf16", "m": 8192, "n": 8192, "k": 8192}
    sustained = h100.value("matmul.tflops", shape | {"phase": "sustained"}, "achievable")
    assert sustained is not None
    assert sustained.value == 730
    assert h100.value("matmul.tflops", shape | {"phase": "burst"}, "achievable") is None
    assert h100.value("matmul.tflops", shape | {"phase": "sustained", "m": 4096}, "achievable") is None
    assert h100.value("all_reduce.busbw", {"bytes": 17_179_869_184, "ranks": 4}, "floor") is None


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("sources: {}\naccelerators: [{key: a, names: [], values: []}]", "accelerators.0.names"),
        ("sources: {}\naccelerators: [{key: a, names: [A], watts: 3, values: []}]", "accelerators.0.watts"),
        (
            "sources: {}\naccelerators: [{key: a, names: [A], values: "
            "[{metric: matmul.speed, kind: peak, value: 1, source: X}]}]",
            "matmul.speed",
        ),
        (
            "sources: {}\naccelerators: [{key: a, names: [A], values: "
            "[{metric: memory.copy, kind: peak, value: .nan, source: X}]}]",
            "line 2: '.nan' is no finite number",
        ),
        (
            "sources: {}\naccelerators: [{key: a, names: [A], values: "
            "[{metric: memory.copy, kind: peak, value: 1, source: X}]}]",
            "source 'X' is not listed",
        ),
        ("sources: [", "no valid YAML"),
        ("", "it is empty (keys: sources, accelerators, fabrics)"),
        ("# nothing\n---\n", "it is empty (keys: sources, accelerators, fabrics)"),
        (
            "accelerators: {}",
            "accelerators: should be a list ([a, b], or lines that begin with -), not keys with values",
        ),
        ("accelerators: [3]", "accelerators.0: should be keys with values (key: value), not 3"),
        (
            "sources: {X: {name: x, at: y, date: 2026-01-01, when: now}}",
            "sources.X.when: unknown key (choices: name, at",
        ),
        ("accelerators: [{key: a, names: [A], watts: 3, values: []}]", "(choices: key, values, names, memory_gb"),
        ("fabrics: [{key: f, title: F, technology: rdma, nics: 8, gbit: 400, values: []}]", "fabrics.0.technology"),
        (
            "fabrics: [{key: f, title: F, technology: roce, nics: 8, gbit: 4, rate: 1, values: []}]",
            "choices: key, values, title",
        ),
        ("fabric: []", "fabric: unknown key, did you mean fabrics? (choices: sources, accelerators, fabrics)"),
        ("sources: {}\n---\nsources: {}", "documents"),
        ("a: &a [x]\nb: [*a]", "aliases"),
        ("!!python/object/apply:os.system ['true']", "line 1: tags"),
        ("- just a list", "the file"),
        (
            "accelerators: [{key: a, names: [A], values: []}]\n"
            "fabrics: [{key: a, title: F, technology: roce, nics: 8, gbit: 400, values: []}]",
            "key stands twice: a",
        ),
    ],
)
def test_a_wrong_reference_file_is_told_in_one_line_with_file_and_key(text: str, told: str) -> None:
    with pytest.raises(ReferenceFileError) as error:
        with_own(text, "mine.yaml")
    message = str(error.value)
    assert message.startswith("mine.yaml: ")
    assert told in message
    assert "\n" not in message


H200 = ("h200-sxm-141",)

# Fabrics -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("network", "key"),
    [
        (Network(technology="infiniband", nics=8, gbit=400, accelerators=("h100-sxm-80",)), "ib-8x400-h100"),
        (Network(technology="infiniband", nics=10, gbit=400, accelerators=("h100-sxm-80",)), "ib-8x400-h100"),
        (Network(technology="infiniband", nics=8, gbit=400, accelerators=("h200-sxm-141",)), "ib-8x400-h200"),
        (Network(technology="infiniband", nics=8, gbit=400, accelerators=("b200-sxm-180",)), "ib-8x400"),
        (Network(technology="infiniband", nics=8, gbit=400), "ib-8x400"),
        (Network(technology="efa", nics=32, gbit=100, vendor="Amazon EC2"), "efa-32x100"),
        (Network(technology="roce", nics=8, gbit=400, vendor="google", accelerators=H200), "roce-8x400-google"),
        (Network(technology="roce", nics=8, gbit=400, vendor="Supermicro", accelerators=H200), "roce-8x400"),
    ],
)  # fmt: skip
def test_a_fabric_is_found_by_what_it_is_and_the_closest_first(network: Network, key: str) -> None:
    found = shipped().fabric(network)
    assert found is not None
    assert found.key == key


@pytest.mark.parametrize(
    "network",
    [
        Network(technology="infiniband", nics=7, gbit=400),  # one is down
        Network(technology="infiniband", nics=16, gbit=400),
        Network(technology="roce", nics=8, gbit=25),
        Network(technology="ethernet", nics=1, gbit=100),
        Network(technology="ethernet", nics=8, gbit=200, accelerators=("h100-sxm-80",)),  # of nobody known
    ],
)
def test_an_unknown_fabric_has_no_reference(network: Network) -> None:
    assert shipped().fabric(network) is None


def test_the_same_accelerator_has_another_floor_on_another_fabric() -> None:
    def floor(network: Network) -> float | None:
        fabric = shipped().fabric(network)
        assert fabric is not None
        found = fabric.value("all_reduce.busbw", {"ranks": 32, "bytes": 1 << 33}, "floor")
        return found and found.value

    h100 = ("h100-sxm-80",)
    assert floor(Network(technology="efa", nics=32, gbit=100, accelerators=h100)) == 300
    assert floor(Network(technology="infiniband", nics=8, gbit=400, accelerators=h100)) == 100
    assert floor(Network(technology="ethernet", nics=8, gbit=200, vendor="Google", accelerators=h100)) == 250


def test_no_floor_of_a_rail_is_above_its_line_rate_and_every_fabric_names_known_accelerators() -> None:
    known = {kind.key for kind in shipped().accelerators}
    for fabric in shipped().fabrics:
        assert set(fabric.accelerators) <= known, fabric.key
        for value in fabric.values:
            assert value.metric != "rail.busbw" or value.value <= fabric.gbit / 8, fabric.key


# A user's own file -------------------------------------------------------------------------------------------------

OWN = """
sources:
  US: {name: ours, at: our own machines in the spring, date: 2026-04-01}
accelerators:
  - key: x1
    names: [Example X1]
    values: [{metric: matmul.tflops, where: {dtype: bf16}, kind: peak, value: 500, source: US}]
  - key: h200-sxm-141
    names: [NVIDIA H200]
    values: [{metric: memory.copy, kind: floor, value: 4000, source: AZ}]
fabrics:
  - {key: slow, title: one cable, technology: ethernet, nics: 1, gbit: 25, values: []}
"""


def test_a_users_file_stands_before_ours_and_adds_to_it() -> None:
    both = with_own(OWN, "ours.yaml")
    own = both.accelerator("Example X1", None, None)
    assert own is not None
    assert both.figure(own, "matmul.tflops", {"dtype": "bf16"}, "peak") == 500
    changed = both.accelerator("NVIDIA H200", H200_BYTES, 700.0)
    assert changed is not None
    assert [value.value for value in changed.values] == [4000]
    assert both.accelerator("NVIDIA H100 80GB HBM3", H100_BYTES, 700.0) == shipped().accelerator(
        "NVIDIA H100 80GB HBM3", H100_BYTES, 700.0
    )
    found = both.fabric(Network(technology="ethernet", nics=1, gbit=25))
    assert isinstance(found, Fabric)
    assert (found.key, found.line_rate) == ("slow", 3.125)
    assert shipped().accelerator("Example X1", None, None) is None


def test_a_users_file_travels_with_its_hash() -> None:
    own = with_own(OWN, "ours.yaml").own
    assert own is not None
    assert own.sha256 == hashlib.sha256(OWN.encode()).hexdigest()
    assert references_of(own).accelerator("Example X1", None, None) is not None
    assert references_of(None) is shipped()
