"""References: the right accelerator or none, each value with its source, and errors that name file and key."""

from pathlib import Path

import pytest

from hwlottery.evidence import metric
from hwlottery.references import ReferenceFileError, accelerators, match_accelerator, sources
from hwlottery.references.accelerators import AcceleratorFile
from hwlottery.references.loading import load

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
    found = match_accelerator(name, memory, watts)
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
    assert match_accelerator(name, memory, watts) is None


def test_a_power_limit_that_cannot_be_read_gets_the_full_power_reference() -> None:
    found = match_accelerator("NVIDIA H200", H200_BYTES, None)
    assert found is not None
    assert found.power_limit_w == 700


def test_every_value_has_a_source_and_a_known_metric() -> None:
    for accelerator in accelerators():
        for value in accelerator.values:
            assert value.source in sources(), accelerator.key
            assert metric(value.metric).better == "higher", "shares of these are value / reference"


@pytest.mark.parametrize("key", ["a100-sxm-80", "h100-sxm-80", "h200-sxm-141"])
def test_what_acceptance_needs_of_a_reference_is_there_for_the_kinds_that_it_names(key: str) -> None:
    kind = next(kind for kind in accelerators() if kind.key == key)
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
    for accelerator in accelerators():
        for name in accelerator.names:
            key = (name, accelerator.memory_gb, accelerator.power_limit_w)
            assert key not in seen
            seen.add(key)


def test_no_achievable_value_is_above_its_peak_but_where_switches_reduce() -> None:
    for accelerator in accelerators():
        for value in accelerator.values:
            peak = accelerator.value(value.metric, dict(value.where), "peak")
            if value.kind == "achievable" and peak and value.metric != "all_reduce.busbw":
                assert value.value <= peak.value, accelerator.key


def test_a_value_is_taken_only_for_the_params_it_was_measured_with() -> None:
    h100 = match_accelerator("NVIDIA H100 80GB HBM3", H100_BYTES, 700.0)
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
            "accelerators.0.values.0.value",
        ),
        (
            "sources: {}\naccelerators: [{key: a, names: [A], values: "
            "[{metric: memory.copy, kind: peak, value: 1, source: X}]}]",
            "source 'X' is not listed",
        ),
        ("sources: [", "accelerators.yaml"),
    ],
)
def test_a_wrong_reference_file_is_told_in_one_line_with_file_and_key(tmp_path: Path, text: str, told: str) -> None:
    file = tmp_path / "accelerators.yaml"
    file.write_text(text)
    with pytest.raises(ReferenceFileError) as error:
        load(file, AcceleratorFile)
    message = str(error.value)
    assert message.startswith("accelerators.yaml: ")
    assert told in message
    assert "\n" not in message
