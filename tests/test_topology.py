"""topology: links, NVLinks and distances inside a node, on made-up PCI trees and on this machine."""

from types import SimpleNamespace

import pynvml
import pytest

from hwlottery.cluster import Cluster, Node, Rank, RankContext
from hwlottery.evidence import Missing, Observed, Reading, metric, parse_subject
from hwlottery.probes.topology import (
    GTS,
    Topology,
    TopologySettings,
    as_reading,
    distances,
    gpu_link,
    look,
    look_at_gpu,
    look_at_nics,
    seen,
)
from hwlottery.sensors.accelerators import nvlinks
from hwlottery.sensors.files import Unreadable
from hwlottery.sensors.links import nics
from hwlottery.sensors.nvml import Nvml
from hwlottery.sensors.pci import distance, link, parse_speed, path_of

ROOT_A, ROOT_B = "pci0000:15", "pci0000:37"
SWITCH = (ROOT_A, "0000:15:01.0", "0000:16:00.0")
GPU = (*SWITCH, "0000:17:00.0", "0000:18:00.0")
NIC_SAME_SWITCH = (*SWITCH, "0000:17:01.0", "0000:19:00.0")
NIC_BELOW_NEXT_SWITCH = (*SWITCH, "0000:17:02.0", "0000:1a:00.0", "0000:1b:00.0", "0000:1c:00.0")
NIC_OTHER_ROOT_PORT = (ROOT_A, "0000:15:02.0", "0000:20:00.0")
NIC_OTHER_BRIDGE = (ROOT_B, "0000:37:01.0", "0000:38:00.0")


@pytest.mark.parametrize(
    ("other", "numa", "expected"),
    [
        (NIC_SAME_SWITCH, (0, 0), "PIX"),
        (NIC_BELOW_NEXT_SWITCH, (0, 0), "PXB"),
        (NIC_OTHER_ROOT_PORT, (0, 0), "PHB"),
        (NIC_OTHER_BRIDGE, (0, 0), "NODE"),
        (NIC_OTHER_BRIDGE, (0, 1), "SYS"),
        (NIC_OTHER_BRIDGE, (0, Unreadable("hidden")), None),
        ((), (0, 0), None),
    ],
)
def test_distances_are_named_as_nvidia_smi_names_them(other, numa, expected):
    assert distance(GPU, other, numa) == expected
    assert distance(other, GPU, (numa[1], numa[0])) == expected


def device(address: str, path: str, **files: str) -> dict[str, str]:
    below = {f"sys/devices/{path}/{name}": content for name, content in files.items()}
    return below | {f"sys/bus/pci/devices/{address}": f"-> ../../../devices/{path}"}


def test_the_path_of_a_device_is_its_bridges_from_the_root_down(tree):
    root = tree(device("0000:18:00.0", "/".join(GPU), numa_node="0"))
    assert path_of("0000:18:00.0", root) == GPU
    assert path_of("0000:99:00.0", root) == ()


def test_a_link_is_read_as_it_runs_and_as_it_could(tree):
    files = {
        "current_link_speed": "16.0 GT/s PCIe",
        "current_link_width": "8",
        "max_link_speed": "32.0 GT/s PCIe",
        "max_link_width": "16",
    }
    found = link("0000:18:00.0", tree(device("0000:18:00.0", "/".join(GPU), **files)))
    assert found == {"pcie.gts": 16.0, "pcie.width": 8, "pcie.gts_max": 32.0, "pcie.width_max": 16}


@pytest.mark.parametrize("width", ["0", "255", "x16", ""])
def test_a_device_without_a_link_has_no_width(tree, width):
    found = link("0000:18:00.0", tree(device("0000:18:00.0", "/".join(GPU), current_link_width=width)))
    assert isinstance(found["pcie.width"], Unreadable)
    assert isinstance(found["pcie.gts"], Unreadable)


def test_the_speed_of_a_virtual_device_is_unreadable():
    assert isinstance(parse_speed("Unknown"), Unreadable)
    assert parse_speed("2.5 GT/s PCIe") == 2.5


class Links:
    """NVML with NVLinks and a PCIe link; `states` beyond the last are refused as NVML refuses them."""

    NVMLError = pynvml.NVMLError

    def __init__(self, states=(), generation=5, width=16, beyond=pynvml.NVML_ERROR_INVALID_ARGUMENT):
        self.states, self.generation, self.width, self.beyond = states, generation, width, beyond

    def nvmlDeviceGetHandleByIndex(self, index):  # noqa: N802
        return index

    def nvmlDeviceGetNvLinkState(self, handle, number):  # noqa: N802
        if number >= len(self.states):
            raise pynvml.NVMLError(self.beyond)
        return self.states[number]

    def nvmlDeviceGetCurrPcieLinkGeneration(self, handle):  # noqa: N802
        return self.generation

    def nvmlDeviceGetCurrPcieLinkWidth(self, handle):  # noqa: N802
        return self.width

    def nvmlDeviceGetPciInfo(self, handle):  # noqa: N802
        return SimpleNamespace(busId="00000000:FE:00.0")


def test_nvlinks_that_are_down_are_counted_as_links_and_not_as_up():
    states = nvlinks(Nvml(Links(states=[1] * 17 + [0]), (0,)), 0)
    assert (len(states), sum(states)) == (18, 17)


@pytest.mark.parametrize("refusal", [pynvml.NVML_ERROR_NOT_SUPPORTED, pynvml.NVML_ERROR_INVALID_ARGUMENT])
def test_a_gpu_without_nvlink_has_none(refusal):
    assert nvlinks(Nvml(Links(beyond=refusal), (0,)), 0) == []


def test_a_lost_gpu_has_unreadable_nvlinks_and_not_none():
    assert isinstance(nvlinks(Nvml(Links(beyond=pynvml.NVML_ERROR_GPU_IS_LOST), (0,)), 0), Unreadable)


def test_the_gpu_itself_tells_its_link():
    assert gpu_link(Nvml(Links(generation=4, width=8), (0,)), 0) == {"pcie.gts": 16.0, "pcie.width": 8}


def test_a_generation_that_is_not_known_falls_back_to_the_kernel_and_is_never_a_number():
    found = gpu_link(Nvml(Links(generation=0), (0,)), 0)
    assert {type(value) for value in found.values()} == {Unreadable}
    assert list(GTS.values()) == [2.5, 5.0, 8.0, 16.0, 32.0, 64.0]


def test_one_sample_that_could_not_be_read_spoils_the_reading():
    denied = Unreadable("Permission denied: /sys/x")
    spoilt = as_reading("topology.pcie_width", "n01/gpu0", [16, denied])
    assert (type(spoilt), spoilt.reason) == (Missing, "closed_to_tenant")
    assert as_reading("topology.pcie_width", "n01/gpu0", []).reason == "not_returned"
    assert as_reading("topology.pcie_width", "n01/gpu0", [16, 8]).samples == (16.0, 8.0)


def test_a_gpu_that_nvml_does_not_know_is_unsupported():
    context = RankContext(subject="n01/gpu0", node="n01", device_name="cuda:0")
    readings = look_at_gpu(context, None, {}, 0.0)
    assert {item.reason for item in readings} == {"unsupported"}
    assert [item.metric for item in readings] == list(Topology.metrics)


def test_a_nic_that_vanished_since_inventory_is_missing():
    readings = look_at_nics("n01", {}, ["mlx5_0"])
    assert [(item.metric, item.subject, item.reason) for item in readings] == [
        ("topology.pcie_width", "n01/mlx5_0", "not_returned"),
        ("topology.pcie_gts", "n01/mlx5_0", "not_returned"),
    ]


def test_distances_to_every_nic_are_facts_or_reasons():
    found = distances(
        "0000:fe:00.0", {"mlx5_0": {"nic.pci": "0000:ff:00.0"}, "eth0": {"nic.pci": Unreadable("virtual")}}
    )
    assert set(found) == {"distance.mlx5_0", "distance.eth0"}
    assert found["distance.eth0"] == Unreadable("virtual")


def cluster(device: str, facts=None) -> Cluster:
    kind = "gpu" if device == "cuda" else "slot"
    ranks = tuple(Rank(subject=f"n01/{kind}{index}", node="n01", index=index, device=device) for index in range(2))
    return Cluster(nodes=(Node(name="n01", ranks=ranks, scratch="/s"),), device=device, facts=facts or {})


def fills(device, facts=None):
    ((trial,),) = Topology().plan(cluster(device, facts), TopologySettings(), seed=0)
    return {(fill.metric, fill.subject) for fill in trial.fills}


def test_every_gpu_and_every_nic_with_a_link_is_asked_for():
    facts = {
        ("n01/gpu0", "accelerator.nvlinks"): 18,
        ("n01/gpu1", "accelerator.nvlinks"): 0,
        ("n01/mlx5_0", "pcie.width_max"): 16,
        ("n02/mlx5_0", "pcie.width_max"): 16,
        ("n01/eth0", "unreadable.pcie.width_max"): "No such file",
    }
    asked = fills("cuda", facts)
    assert {subject for name, subject in asked if name == "topology.pcie_width"} == {
        "n01/gpu0",
        "n01/gpu1",
        "n01/mlx5_0",
    }
    assert [subject for name, subject in asked if name == "topology.nvlinks_active"] == ["n01/gpu0"]
    assert all(parse_subject(subject).kind in metric(name).subjects for name, subject in asked)


def test_a_gpu_whose_nvlinks_inventory_could_not_read_is_still_asked():
    assert ("topology.nvlinks_active", "n01/gpu0") in fills("cuda")


def test_a_node_without_accelerators_and_links_has_nothing_to_fill():
    assert fills("cpu") == set()


def test_what_was_looked_at_is_said():
    assert seen(None, {}) == "no accelerators, 0 NICs, 0 of them with a PCIe link of their own"
    assert "cannot be seen (NVML: Unknown Error)" in seen(Unreadable("NVML: Unknown Error"), {})
    assert seen(None, {"mlx5_0": {"pcie.width_max": 16}}).endswith("1 of them with a PCIe link of their own: mlx5_0")


def test_looking_at_this_machine_measures_the_links_it_has_and_says_so(tmp_path):
    linked = [name for name, card in nics().items() if isinstance(card.get("pcie.width_max"), int)]
    context = RankContext(subject="n01/slot0", node="n01", device_name="cpu", scratch=tmp_path)
    readings = look(context, {"load_s": 0.0, "nics": linked})
    assert [item.key for item in readings if isinstance(item, Observed)] == ["topology.seen"]
    assert len([item for item in readings if isinstance(item, Reading | Missing)]) == 2 * len(linked)
