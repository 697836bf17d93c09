"""inventory: what a node is, and what a tenant may not see."""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pynvml
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hwlottery.cluster import Cluster, Node, Rank, RankContext
from hwlottery.evidence import Noticed, Observed, parse_subject
from hwlottery.probes.inventory import Inventory, InventorySettings, accelerator_facts, look
from hwlottery.sensors.accelerators import foreign_processes, gpu_facts, node_facts
from hwlottery.sensors.access import access_tier, container_signs, is_virtual, may_mount
from hwlottery.sensors.files import Unreadable, entries, facts, number, text
from hwlottery.sensors.host import (
    as_ranges,
    cpu_limit,
    from_ranges,
    memory_limit,
    numa_nodes,
    parse_cpuinfo,
    parse_meminfo,
    parse_os_release,
)
from hwlottery.sensors.host_sensors import parse_process, parse_stat
from hwlottery.sensors.identity import hardware_identity, identity_parts, is_identity, machine
from hwlottery.sensors.kernel_log import parse_record
from hwlottery.sensors.links import falls_so_far, link_falls, nics, parse_rate
from hwlottery.sensors.nvml import Nvml, named_reasons, open_nvml, visible
from hwlottery.sensors.pci import acs_redirect, parse_speed
from hwlottery.sensors.processes import foreign_facts, own_pids
from hwlottery.sensors.settings import clock_synchronised, governor, parse_choice
from hwlottery.sensors.software import nccl, parse_driver, parse_torch_version, software_versions
from hwlottery.sensors.storage import mount_of, parse_mountinfo, scratch_facts

UUIDS = ["GPU-11111111-aaaa-bbbb-cccc-000000000000", "GPU-22222222-aaaa-bbbb-cccc-000000000000"]
XEON = """processor\t: 0
model name\t: Intel(R) Xeon(R) Platinum 8480C
physical id\t: 0
core id\t\t: 0
flags\t\t: fpu avx512f amx_bf16

processor\t: 1
model name\t: Intel(R) Xeon(R) Platinum 8480C
physical id\t: 0
core id\t\t: 0
flags\t\t: fpu avx512f amx_bf16

processor\t: 2
model name\t: Intel(R) Xeon(R) Platinum 8480C
physical id\t: 1
core id\t\t: 0
flags\t\t: fpu avx512f amx_bf16
"""
PCI = "sys/devices/pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:00.0"
HGX = {
    "sys/class/dmi/id/product_serial": "J1050ACR7K2",
    "sys/class/dmi/id/board_serial": "To be filled by O.E.M.",
    "sys/class/dmi/id/chassis_serial": "00000000",
    "sys/class/dmi/id/sys_vendor": "Supermicro",
    f"{PCI}/0000:18:00.0/numa_node": "0",
    f"{PCI}/0000:18:00.0/driver": "-> /sys/bus/pci/drivers/mlx5_core",
    f"{PCI}/0000:18:00.0/net/ibs0/": "",
    "sys/class/infiniband/mlx5_0/device": "-> ../../../../" + f"{PCI}/0000:18:00.0",
    "sys/class/infiniband/mlx5_0/node_guid": "b83f:d203:00a1:5e10",
    "sys/class/infiniband/mlx5_0/fw_ver": "28.39.1002",
    "sys/class/infiniband/mlx5_0/board_id": "MT_0000000838",
    "sys/class/infiniband/mlx5_0/ports/1/state": "4: ACTIVE",
    "sys/class/infiniband/mlx5_0/ports/1/phys_state": "5: LinkUp",
    "sys/class/infiniband/mlx5_0/ports/1/rate": "400 Gb/sec (4X NDR)",
    "sys/class/infiniband/mlx5_0/ports/1/link_layer": "InfiniBand",
    "sys/class/infiniband/mlx5_0/ports/1/lid": "0x2a",
    "sys/class/infiniband/mlx5_0/ports/1/counters/link_downed": "3",
    "sys/class/net/ibs0/device": "-> ../../../../" + f"{PCI}/0000:18:00.0",
    "sys/class/net/ibs0/address": "00:00:10:27:fe:80:00:00",
    "sys/class/net/ibs0/mtu": "4092",
    "sys/class/net/ibs0/carrier_down_count": "2",
    "sys/class/net/eno1/device/uevent": "",
    "sys/class/net/eno1/address": "7c:c2:55:01:02:03",
    "sys/class/net/eno1/speed": "-1",
    "sys/class/net/eno1/mtu": "1500",
    "sys/class/net/eno1/operstate": "down",
    "sys/class/net/eno1/carrier_down_count": "1",
    "sys/class/net/lo/address": "00:00:00:00:00:00",
    "etc/machine-id": "0123456789abcdef0123456789abcdef",
}


class FakeLibrary:
    """NVML as nvidia-ml-py shows it, with two H100s; what is not set answers "Not Supported"."""

    NVMLError = pynvml.NVMLError
    c_nvmlGpuFabricInfoV_t = pynvml.c_nvmlGpuFabricInfoV_t  # noqa: N815  # NVML's own name

    def __init__(self, **answers: object) -> None:
        self.answers = {
            "nvmlInit": None,
            "nvmlDeviceGetCount": 2,
            "nvmlDeviceGetHandleByIndex": lambda index: index,
            "nvmlDeviceGetUUID": lambda index: UUIDS[index],
            "nvmlDeviceGetName": "NVIDIA H100 80GB HBM3",
            "nvmlDeviceGetPciInfo": lambda index: SimpleNamespace(busId=f"00000000:{index + 0x1B:X}:00.0"),
            "nvmlDeviceGetMemoryInfo": SimpleNamespace(total=85520809984, used=600000000, free=84920809984),
            "nvmlDeviceGetPowerManagementLimit": 700000,
            "nvmlDeviceGetEccMode": [1, 1],
            "nvmlDeviceGetRemappedRows": (0, 1, 1, 0),
            "nvmlDeviceGetSerial": "0",
            "nvmlSystemGetCudaDriverVersion": 12040,
            "nvmlSystemGetDriverVersion": b"550.54.15",
            **answers,
        }

    def __getattr__(self, name: str):
        answer = self.answers.get(name, pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED))

        def call(*arguments):
            if isinstance(answer, Exception):
                raise answer
            return answer(*arguments) if callable(answer) else answer

        return call


def test_a_file_that_cannot_be_read_has_a_reason_and_no_value(tmp_path):
    assert text(tmp_path / "none") == Unreadable(f"No such file or directory: {tmp_path}/none")
    (tmp_path / "empty").write_text("\n")
    assert isinstance(text(tmp_path / "empty"), Unreadable)
    (tmp_path / "word").write_text("unknown\n")
    assert isinstance(number(tmp_path / "word"), Unreadable)
    (tmp_path / "hex").write_text("0x2a\n")
    assert number(tmp_path / "hex") == 42


def test_what_is_unreadable_is_a_fact_of_its_own_and_never_a_value():
    found = facts("n01", {"cpu.model": "EPYC", "identity.product_serial": Unreadable("Permission denied: /sys/x")})
    assert found == [
        Observed(subject="n01", key="cpu.model", value="EPYC"),
        Observed(subject="n01", key="unreadable.identity.product_serial", value="Permission denied: /sys/x"),
    ]


def test_devices_are_listed_in_the_order_of_their_numbers(tree):
    root = tree({f"cpu{index}/": "" for index in (10, 2, 0)})
    assert [path.name for path in entries(root)] == ["cpu0", "cpu2", "cpu10"]


@pytest.mark.parametrize(
    "value",
    ["", "0", "00000000", "Not Specified", "To be filled by O.E.M.", "Default string", "N/A", "None", "xxxxxxx",
     "00000000-0000-0000-0000-000000000000", "FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF", ".........", "0123456789",
     "03000200-0400-0500-0006-000700080009", "System Serial Number"],
)  # fmt: skip
def test_a_placeholder_in_the_firmware_is_no_identity(value):
    assert not is_identity(value)


@pytest.mark.parametrize("value", ["J1050ACR7K2", "1654923012345", "4C4C4544-0042-3510-8052-B4C04F4E3332", "ec2b7a1e"])
def test_a_serial_number_is_an_identity(value):
    assert is_identity(value)


def test_placeholders_become_reasons_and_serials_stay(tree):
    found = machine(tree(HGX))
    assert found["identity.product_serial"] == "J1050ACR7K2"
    assert isinstance(found["identity.board_serial"], Unreadable)
    assert isinstance(found["identity.chassis_serial"], Unreadable)
    assert isinstance(found["identity.product_uuid"], Unreadable)


def test_the_identity_is_made_of_serials_gpus_and_guids_and_not_of_the_hostname(tree):
    root = tree(HGX)
    parts = identity_parts(root, Nvml(FakeLibrary(), (0, 1)))
    assert parts == ["gpu=" + UUIDS[0], "gpu=" + UUIDS[1], "guid=b83f:d203:00a1:5e10", "serial=J1050ACR7K2"]
    (root / "etc/machine-id").write_text("another\n")
    assert identity_parts(root, Nvml(FakeLibrary(), (0, 1))) == parts


def test_the_identity_changes_with_a_gpu_and_not_with_their_order(tree):
    root = tree(HGX)
    both = hardware_identity(root, Nvml(FakeLibrary(), (0, 1)))
    assert hardware_identity(root, Nvml(FakeLibrary(), (1, 0))) == both
    assert hardware_identity(root, Nvml(FakeLibrary(), (0,))) != both


def test_without_serials_the_identity_falls_back_to_machine_id_and_macs_of_real_nics(tree):
    root = tree({name: HGX[name] for name in HGX if "net/" in name or "machine-id" in name})
    assert identity_parts(root, None) == [
        "mac=00:00:10:27:fe:80:00:00",
        "mac=7c:c2:55:01:02:03",
        "machine-id=0123456789abcdef0123456789abcdef",
    ]


def test_gpu_uuids_come_from_the_driver_where_nvml_fails_and_question_marks_are_none(tree):
    known = {"proc/driver/nvidia/gpus/0000:1b:00.0/information": f"Model: H100\nGPU UUID: \t {UUIDS[0]}"}
    unknown = {"proc/driver/nvidia/gpus/0000:1c:00.0/information": "GPU UUID: GPU-????????-????-????-????-????????????"}
    assert identity_parts(tree(known | unknown), Unreadable("NVML: Unknown Error")) == [f"gpu={UUIDS[0]}"]


def test_no_driver_and_no_gpu_is_no_accelerators(tree):
    missing = FakeLibrary(nvmlInit=pynvml.NVMLError(pynvml.NVML_ERROR_LIBRARY_NOT_FOUND))
    assert open_nvml(tree({"proc/": ""}), missing, {}) is None


@pytest.mark.parametrize(
    "sign",
    [
        {"proc/driver/nvidia/version": "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue"},
        {"dev/nvidiactl": ""},
        {"sys/bus/pci/devices/0000:1b:00.0/vendor": "0x10de", "sys/bus/pci/devices/0000:1b:00.0/class": "0x030200"},
    ],
)
@pytest.mark.parametrize("error", [pynvml.NVML_ERROR_LIBRARY_NOT_FOUND, pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH])
def test_a_gpu_or_driver_with_a_failing_nvml_is_an_error_and_not_no_gpus(tree, sign, error):
    opened = open_nvml(tree(sign), FakeLibrary(nvmlInit=pynvml.NVMLError(error)), {})
    assert isinstance(opened, Unreadable)
    noticed = accelerator_facts("n01", opened, frozenset())
    assert [(item.severity, item.subject) for item in noticed if isinstance(item, Noticed)] == [("error", "n01")]
    assert "accelerators.count" not in {fact.key for fact in facts("n01", node_facts(opened, 1))}


def test_a_driver_that_shows_no_gpu_is_an_error(tree):
    assert isinstance(open_nvml(tree({"dev/nvidiactl": ""}), FakeLibrary(nvmlDeviceGetCount=0), {}), Unreadable)


@pytest.mark.parametrize(
    ("setting", "shown"),
    [(None, (0, 1)), ("1", (1,)), ("1,0", (1, 0)), ("0, 1", (0, 1)), (UUIDS[1], (1,)), ("GPU-2", (1,)),
     ("0,7,1", (0,)), ("0,0", (0,))],
)  # fmt: skip
def test_sensors_see_the_gpus_that_cuda_sees_in_its_order(setting, shown):
    assert visible(setting, UUIDS) == shown


@pytest.mark.parametrize("setting", ["", "-1", "none", "9", "GPU-", "MIG-11111111-aaaa"])
def test_a_setting_that_shows_no_whole_gpu_has_a_reason(setting):
    assert isinstance(visible(setting, UUIDS), Unreadable)


def test_a_gpu_is_described_and_what_it_does_not_support_is_said():
    found = gpu_facts(Nvml(FakeLibrary(), (1,)), 0, set())
    assert found["accelerator.name"] == "NVIDIA H100 80GB HBM3"
    assert found["accelerator.uuid"] == UUIDS[1]
    assert found["accelerator.memory"] == 85520809984
    assert found["accelerator.power_limit"] == 700.0
    assert found["accelerator.pci"] == "0000:1c:00.0"
    assert (found["accelerator.ecc"], found["accelerator.remap_pending"], found["accelerator.remap_failed"]) == (
        True,
        True,
        False,
    )
    assert found["accelerator.mig"] == Unreadable("NVML: Not Supported")
    assert isinstance(found["accelerator.serial"], Unreadable)


def test_a_lost_gpu_has_no_values_at_all():
    lost = pynvml.NVMLError(pynvml.NVML_ERROR_GPU_IS_LOST)
    found = gpu_facts(Nvml(FakeLibrary(nvmlDeviceGetHandleByIndex=lost), (0,)), 0, set())
    assert {type(value) for value in found.values()} == {Unreadable}


def test_bindings_that_do_not_fit_the_driver_are_a_reason_and_no_crash():
    mismatch = pynvml.NVMLLibraryMismatchError("Unversioned function called")
    found = gpu_facts(Nvml(FakeLibrary(nvmlDeviceGetMemoryInfo=mismatch, nvmlDeviceGetEccMode=7), (0,)), 0, set())
    assert isinstance(found["accelerator.memory"], Unreadable)
    assert isinstance(found["accelerator.ecc"], Unreadable)


def test_driver_versions_are_read():
    found = node_facts(Nvml(FakeLibrary(), (0, 1)), 3)
    assert found == {
        "accelerators.on_pci_bus": 3,
        "accelerators.count": 2,
        "driver.version": "550.54.15",
        "driver.cuda": "12.4",
    }


def test_processes_of_others_on_a_gpu_are_counted_without_ours():
    processes = [SimpleNamespace(pid=10, usedGpuMemory=5), SimpleNamespace(pid=11, usedGpuMemory=7)]
    assert foreign_processes(processes, {10}) == {"accelerator.foreign_processes": 1, "accelerator.foreign_memory": 7}
    untold = [SimpleNamespace(pid=11, usedGpuMemory=None)]
    assert isinstance(foreign_processes(untold, set())["accelerator.foreign_memory"], Unreadable)


def test_clock_reasons_are_a_bitmask():
    assert named_reasons(0x4 | 0x8 | 0x80) == "power cap, hardware slowdown, power brake"
    assert named_reasons(0) == "none"
    assert named_reasons(0x8000) == "bits 0x8000"


def test_processors_are_counted_by_socket_core_and_thread():
    found = parse_cpuinfo(XEON)
    assert (found["cpu.sockets"], found["cpu.cores"], found["cpu.threads"]) == (2, 2, 3)
    assert found["cpu.bf16"] is True


def test_an_arm_cpuinfo_without_sockets_leaves_them_unreadable():
    found = parse_cpuinfo("processor\t: 0\nFeatures\t: fp asimd bf16\n\nprocessor\t: 1\nFeatures\t: fp asimd bf16\n")
    assert (found["cpu.threads"], found["cpu.bf16"]) == (2, True)
    assert isinstance(found["cpu.sockets"], Unreadable)


def test_an_empty_cpuinfo_counts_no_cpu():
    assert {type(value) for value in parse_cpuinfo("").values()} == {Unreadable}


@given(st.sets(st.integers(0, 600), max_size=40))
def test_cpu_lists_survive_writing_and_reading(numbers):
    assert set(from_ranges(as_ranges(numbers))) == numbers


def test_memory_is_in_bytes_and_counts_stay_counts():
    found = parse_meminfo("MemTotal:       24684096 kB\nHugePages_Total:       4\nNode 0 MemFree:   10 kB\n")
    assert found == {"MemTotal": 24684096 * 1024, "HugePages_Total": 4, "MemFree": 10240}


def test_the_tightest_cgroup_2_above_us_limits(tree):
    root = tree(
        {
            "proc/self/cgroup": "0::/kubepods/pod1/c1",
            "sys/fs/cgroup/kubepods/pod1/c1/cpu.max": "max 100000",
            "sys/fs/cgroup/kubepods/pod1/cpu.max": "350000 100000",
            "sys/fs/cgroup/kubepods/pod1/c1/memory.max": "8589934592",
            "sys/fs/cgroup/kubepods/memory.max": "max",
        }
    )
    assert cpu_limit(root) == 3.5
    assert memory_limit(root) == 8589934592


def test_cgroup_1_limits_are_read_and_its_no_limit_is_none(tree):
    root = tree(
        {
            "proc/self/cgroup": "4:memory:/docker/abc\n1:cpu,cpuacct:/docker/abc",
            "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "200000",
            "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000",
            "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712",
        }
    )
    assert cpu_limit(root) == 2.0
    assert isinstance(memory_limit(root), Unreadable)


def test_numa_nodes_carry_their_cpus_and_memory(tree):
    root = tree(
        {
            "sys/devices/system/node/node0/cpulist": "0-55,112-167",
            "sys/devices/system/node/node0/meminfo": "Node 0 MemTotal:       1056000000 kB",
            "sys/devices/system/node/has_cpu": "0",
        }
    )
    found = numa_nodes(root)
    assert list(found) == ["numa0"]
    assert found["numa0"]["numa.cpus"] == "0-55,112-167"
    assert found["numa0"]["numa.memory"] == 1056000000 * 1024


def test_an_rdma_nic_goes_by_its_device_with_rate_and_state_and_covers_its_interface(tree):
    found = nics(tree(HGX))
    assert list(found) == ["eno1", "mlx5_0"]
    card = found["mlx5_0"]
    assert (card["port1.state"], card["port1.rate"], card["port1.lid"]) == ("ACTIVE", 400_000_000_000, 42)
    assert (card["nic.pci"], card["nic.driver"], card["nic.numa_node"]) == ("0000:18:00.0", "mlx5_core", 0)
    assert (card["nic.netdev"], card["nic.mtu"]) == ("ibs0", 4092)


def test_a_link_that_is_down_has_no_speed_rather_than_minus_one(tree):
    card = nics(tree(HGX))["eno1"]
    assert isinstance(card["nic.speed"], Unreadable)
    assert card["nic.state"] == "down"


@pytest.mark.parametrize(
    ("rate", "bits"), [("400 Gb/sec (4X NDR)", 400e9), ("2.5 Gb/sec (1X SDR)", 2.5e9), ("100 Gb/sec (2X HDR)", 100e9)]
)
def test_infiniband_rates_are_read(rate, bits):
    assert parse_rate(rate) == bits


def test_a_link_that_fell_is_seen_as_a_difference_of_counters(tree):
    root = tree(HGX)
    before = falls_so_far(root)
    assert before == {"mlx5_0": 5, "eno1": 1}  # its port and its network interface together
    assert link_falls(before, before) == {}
    (root / "sys/class/infiniband/mlx5_0/ports/1/counters/link_downed").write_text("5\n")
    assert link_falls(before, falls_so_far(root)) == {"mlx5_0": 2}
    (root / "sys/class/infiniband/mlx5_0/ports/1/counters/link_downed").write_text("0\n")
    assert link_falls(before, falls_so_far(root)) == {}


def test_governors_that_differ_are_all_named(tree):
    cpus = {f"sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor": "performance" for cpu in range(3)}
    cpus["sys/devices/system/cpu/cpu3/cpufreq/scaling_governor"] = "powersave"
    assert governor(tree(cpus)) == "performance, powersave"


def test_the_chosen_word_is_the_bracketed_one():
    assert parse_choice("always [madvise] never") == "madvise"
    assert isinstance(parse_choice("always"), Unreadable)


def test_the_kernel_tells_whether_its_clock_is_kept():
    assert clock_synchronised() in (True, False)


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5 22:23:56 UTC 2024", "550.54.15"),
        ("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.86.15  Release Build  (dvs)", "570.86.15"),
        ("", None),
    ],
)
def test_the_driver_version_is_read_in_both_its_forms(version, expected):
    assert parse_driver(version) == expected


def test_the_cuda_version_of_torch_is_read_without_importing_it():
    assert parse_torch_version("__version__ = '2.6.0'\ncuda: Optional[str] = '12.4'\nhip = None\n") == "12.4"
    assert parse_torch_version("__version__ = '2.6.0+cpu'\ncuda: Optional[str] = None\n") is None
    assert parse_torch_version("cuda = '13.0'\n") == "13.0"


def test_software_versions_leave_out_what_is_not_installed(tree, tmp_path):
    found = software_versions(tree({"etc/os-release": 'PRETTY_NAME="Ubuntu 22.04.4 LTS"'}))
    assert found["os"] == "Ubuntu 22.04.4 LTS"
    assert "nccl" not in found or nccl(tmp_path)  # only where torch brought its package
    assert "driver" not in found
    assert "" not in found.values()


def test_an_images_own_nccl_is_found_by_the_name_of_its_library(tree):
    library = "usr/lib/x86_64-linux-gnu/libnccl.so.2"
    root = tree({f"{library}.21.5": "", library: "-> libnccl.so.2.21.5"})
    assert nccl(root) in ("2.21.5", nccl(root / "none"))


MOUNTS = (
    "1 0 8:1 / / rw,relatime - ext4 /dev/sda1 rw\n"
    "2 1 0:50 / /scratch rw,noatime master:1 - lustre 10.0.0.1@o2ib:/fs rw,flock\n"
    "3 1 0:51 / /my\\040disk rw - xfs /dev/nvme0n1 rw\n"
    "4 2 0:52 / /scratch rw - tmpfs over rw\n"
)


def test_a_path_lies_on_the_deepest_and_last_mount_above_it():
    mounts = parse_mountinfo(MOUNTS)
    assert mount_of(Path("/scratch/run"), mounts).kind == "tmpfs"
    assert mount_of(Path("/scratchy"), mounts).kind == "ext4"
    assert mount_of(Path("/my disk/x"), mounts).source == "/dev/nvme0n1"
    assert mount_of(Path("/x"), []) is None


def test_a_scratch_that_is_not_there_has_no_free_bytes(tmp_path):
    assert isinstance(scratch_facts(tmp_path / "none")["filesystem.free"], Unreadable)
    assert scratch_facts(tmp_path)["filesystem.free"] > 0


PRIVILEGED = {
    "proc/self/status": "CapEff:\t000001ffffffffff",
    "proc/self/uid_map": "0 0 4294967295",
    "dev/kmsg": "6,1,0,-;log",
    "sys/bus/pci/devices/0000:00:00.0/": "",
    "proc/self/mountinfo": MOUNTS,
}
PLAIN = {
    "proc/self/status": "CapEff:\t0000000000000000",
    "proc/self/uid_map": "0 0 4294967295",
    "sys/bus/pci/devices/0000:00:00.0/": "",
    "proc/self/mountinfo": MOUNTS,
}
METAL = {"proc/2/comm": "kthreadd", "proc/cpuinfo": "processor: 0\nflags: fpu vme"}
GUEST = {"proc/2/comm": "kthreadd", "proc/cpuinfo": "processor: 0\nflags: fpu hypervisor"}
OVERLAY = "1 0 0:9 / / rw - overlay overlay rw,lowerdir=/x"
HIDDEN = "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n2 1 0:5 / /proc rw - proc proc rw,hidepid=invisible"
DOCKER = {
    "proc/2/comm": "bash",
    ".dockerenv": "",
    "proc/cpuinfo": "processor: 0\nflags: fpu",
    "proc/self/mountinfo": OVERLAY,
}


@pytest.mark.parametrize(
    ("files", "tier"),
    [
        (PRIVILEGED | METAL, "bare-root"),
        (PLAIN | METAL, "bare"),
        (PRIVILEGED | GUEST, "vm-root"),
        (PLAIN | GUEST, "vm"),
        (PRIVILEGED | DOCKER, "container-root"),
        (PLAIN | DOCKER, "container"),
        (PRIVILEGED | GUEST | {".dockerenv": ""}, "vm-root"),  # a machine image made from a container image
        (PLAIN | GUEST | {".dockerenv": ""}, "vm"),
        (PLAIN | METAL | {"proc/self/mountinfo": OVERLAY}, "bare"),  # a diskless node
        (
            PLAIN | METAL | {".dockerenv": "", "proc/self/mountinfo": OVERLAY},
            "container",
        ),  # in the host's PID namespace
        (PLAIN | GUEST | {"proc/2/comm": "", "proc/self/mountinfo": HIDDEN}, "vm"),  # others' processes are hidden
        (PLAIN | DOCKER | {"proc/self/uid_map": "0 100000 65536"}, "container"),
    ],
)
def test_the_access_tier_follows_from_what_may_be_done(tree, files, tier):
    assert access_tier(tree(files)) == tier


def test_root_of_a_user_namespace_may_not_mount():
    capable = "CapEff:\t000001ffffffffff"
    assert may_mount(capable, "         0          0 4294967295")
    assert not may_mount(capable, "0 1000 1")
    assert not may_mount("", "")


def test_an_arm_virtual_machine_is_known_by_its_product_and_amazons_metal_is_not(tree):
    assert is_virtual(tree({"sys/class/dmi/id/product_name": "KVM Virtual Machine"}))


def test_amazons_bare_metal_is_no_virtual_machine(tree):
    root = tree({"sys/class/dmi/id/product_name": "p5.48xlarge.metal", "sys/class/dmi/id/sys_vendor": "Amazon EC2"})
    assert not is_virtual(root)


def test_the_marks_of_a_container_are_named(tree):
    assert container_signs(tree(DOCKER)) == ("/.dockerenv", "overlay root")


PARSERS = (parse_cpuinfo, parse_meminfo, parse_mountinfo, parse_rate, parse_speed, parse_choice, parse_driver,
           parse_torch_version, parse_os_release, parse_stat, parse_record, lambda text: parse_process(1, text),
           lambda text: may_mount(text, text), lambda text: visible(text, UUIDS))  # fmt: skip
WORDS = st.sampled_from(
    ["cpu", "CapEff:", "0 0 4294967295", "MemTotal:", " kB", "GT/s", "Gb/sec", "1.2.3", "-1", "9" * 30, ") S", "[x]",
     "processor : ", "physical id : x", " - ", "/", "\n", "4,1,x,-;NVRM: Xid (PCI:0): 1", "0x", "²", "GPU-", ","]
)  # fmt: skip


@pytest.mark.parametrize("parse", PARSERS)
@given(text=st.lists(WORDS | st.text(max_size=6), max_size=12).map(" ".join))
def test_no_text_makes_a_parser_raise(parse, text):
    parse(text)


@given(st.binary(max_size=600).map(lambda tail: bytes(256) + tail))
def test_no_configuration_space_makes_its_reader_raise(space):
    assert acs_redirect(space) in (True, False, None)


def acs(control: int) -> bytes:
    """4 KiB of configuration space: AER at 0x100, then ACS at 0x148."""
    space = bytearray(4096)
    space[0x100:0x104] = (0x148 << 20 | 1 << 16 | 0x0001).to_bytes(4, "little")
    space[0x148:0x14C] = (1 << 16 | 0x000D).to_bytes(4, "little")
    space[0x14E] = control
    return bytes(space)


def test_access_control_services_are_read_from_configuration_space():
    assert acs_redirect(acs(0x1D)) is True
    assert acs_redirect(acs(0x00)) is False
    assert acs_redirect(acs(0x1D)[:256]) is None  # what a tenant without permission gets
    assert acs_redirect(b"") is None


def test_a_loop_in_configuration_space_ends():
    space = bytearray(4096)
    space[0x100:0x104] = (0x100 << 20 | 1).to_bytes(4, "little")
    assert acs_redirect(bytes(space)) is None


def test_our_own_processes_are_not_foreign():
    assert {os.getpid(), os.getppid()} <= own_pids()


def test_a_busy_process_of_somebody_else_is_seen_and_named_and_one_of_ours_is_not(tmp_path):
    (tmp_path / "busyloop").symlink_to(sys.executable)
    with subprocess.Popen([tmp_path / "busyloop", "-S", "-c", "while True: pass"]) as busy:
        try:
            seen = foreign_facts(own_pids() - {busy.pid}, interval_s=0.6)
            ours = foreign_facts(own_pids() | {busy.pid}, interval_s=0.6)
        finally:
            busy.kill()
    assert seen["foreign.busy_cores"] > 0.2
    assert "busyloop" in seen["foreign.busiest"]
    assert "busyloop" not in ours.get("foreign.busiest", "")


def test_looking_at_a_node_needs_neither_torch_nor_the_control_plane_until_it_looks():
    modules = "probes.inventory, hwlottery.probes.topology, hwlottery.probes.filesystem, hwlottery.sensors.sampler"
    heavy = "{'torch', 'numpy', 'pydantic', 'dask', 'distributed', 'pebble', 'pandas'}"
    script = f"import sys, hwlottery.{modules}; print(sorted({heavy} & set(sys.modules)))"
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent / ".src")}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def cluster() -> Cluster:
    ranks = [
        [Rank(subject=f"{node}/slot{index}", node=node, index=index, device="cpu") for index in range(2)]
        for node in ("n01", "n02")
    ]
    nodes = tuple(Node(name=of[0].node, ranks=tuple(of), scratch="/scratch") for of in ranks)
    return Cluster(nodes=nodes, device="cpu")


def test_inventory_runs_once_on_each_node_and_all_nodes_at_once():
    rounds = list(Inventory().plan(cluster(), InventorySettings(), seed=1))
    assert [[trial.ranks[0].subject for trial in round_] for round_ in rounds] == [["n01/slot0", "n02/slot0"]]
    assert rounds == list(Inventory().plan(cluster(), InventorySettings(), seed=1))


def test_looking_around_here_gives_each_wanted_key_once_as_a_value_or_with_a_reason(tmp_path):
    context = RankContext(subject="n01/slot0", node="n01", device_name="cpu", scratch=tmp_path)
    readings = [item for item in look(context, {"watch_s": 0.1}) if isinstance(item, Observed)]
    keys = [(item.subject, item.key.removeprefix("unreadable.")) for item in readings]
    assert len(keys) == len(set(keys))
    for wanted in ("hardware.identity", "node.tier", "cpu.model", "memory.total", "os.kernel", "torch.version",
                   "limit.memlock", "shm.free", "filesystem.kind", "foreign.busy_cores", "accelerators.count",
                   "cpu.governor", "identity.product_serial", "clock.synchronised"):  # fmt: skip
        assert ("n01", wanted) in keys, wanted
    assert {parse_subject(item.subject).node for item in readings} == {"n01"}
    empty = ("", "unknown", "n/a", "none", "-1")
    assert not [item for item in readings if str(item.value).lower() in empty and item.key != "access.container_signs"]


CLUSTER = bytes(range(16))


def in_fabric(**fields):
    """nvmlDeviceGetGpuFabricInfoV fills the structure that it is given."""

    def fill(_handle, info):
        assert info.version == pynvml.nvmlGpuFabricInfo_v2
        for name, value in ({"state": pynvml.NVML_GPU_FABRIC_STATE_COMPLETED, "status": 0} | fields).items():
            setattr(info, name, (type(info.clusterUuid))(*value) if name == "clusterUuid" else value)

    return FakeLibrary(nvmlDeviceGetGpuFabricInfoV=fill)


@pytest.mark.parametrize(
    ("library", "domain"),
    [
        (in_fabric(clusterUuid=CLUSTER, cliqueId=7), f"{CLUSTER.hex()}.7"),
        (in_fabric(clusterUuid=bytes(16), cliqueId=0), ""),  # the NVSwitches of one node
        (in_fabric(state=pynvml.NVML_GPU_FABRIC_STATE_NOT_SUPPORTED), ""),
        (FakeLibrary(), ""),
    ],
)
def test_the_nvlink_domain_is_that_of_the_fabric_and_empty_where_there_is_none(library, domain):
    assert gpu_facts(Nvml(library, (0,)), 0, set())["accelerator.nvlink_domain"] == domain


@pytest.mark.parametrize("fields", [{"state": pynvml.NVML_GPU_FABRIC_STATE_IN_PROGRESS}, {"status": 999}])
def test_a_fabric_that_is_not_ready_is_no_answer(fields):
    found = gpu_facts(Nvml(in_fabric(clusterUuid=CLUSTER, cliqueId=7, **fields), (0,)), 0, set())
    assert "not ready" in found["accelerator.nvlink_domain"].why
    lost = FakeLibrary(nvmlDeviceGetGpuFabricInfoV=pynvml.NVMLError(pynvml.NVML_ERROR_GPU_IS_LOST))
    assert "lost" in gpu_facts(Nvml(lost, (0,)), 0, set())["accelerator.nvlink_domain"].why
