"""doctor: what would keep a run from working is a problem with a remedy, and what is well is not."""

import stat
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pynvml
import pytest

from hwlottery.runner import doctor_host as host
from hwlottery.runner import doctor_software as software
from hwlottery.runner.doctor import examine, in_time
from hwlottery.sensors.access import Access
from hwlottery.sensors.files import Unreadable
from hwlottery.sensors.nvml import Nvml


def states(advice) -> list[str]:
    return [item.state for item in advice]


def test_this_machine_is_examined_whole_and_every_problem_has_a_remedy(tmp_path):
    advice = examine(tmp_path)
    names = [item.name for item in advice]
    assert len(names) == len(set(names))
    looked_at = (
        "python, torch, fio, TLS, scratch, fsync, direct I/O, shared memory, memlock, open files, clock, loopback"
    )
    assert {*looked_at.split(", "), "hostname", "CPUs", "other load", "access", "accelerators"} <= set(names)
    assert all(item.remedy for item in advice if item.state == "problem")
    assert all(item.detail for item in advice)
    assert list(tmp_path.iterdir()) == []


def test_an_old_python_is_a_problem():
    assert software.python_version((3, 10)).state == "problem"
    assert software.python_version((3, 11)).state == "ok"


@pytest.mark.parametrize(
    ("said", "gpus", "state"),
    [
        ("2.13.0+cpu None 0", False, "ok"),
        ("2.13.0+cpu None 0", True, "problem"),
        ("2.6.0+cu124 12.4 0", True, "problem"),
        ("2.6.0+cu124 12.4 8", True, "ok"),
        (Unreadable("import torch failed: libcudart.so.12: cannot open"), False, "problem"),
    ],
)
def test_torch_must_load_and_see_the_gpus_there_are(said, gpus, state):
    assert software.torch_build(said, gpus).state == state


def test_torch_is_asked_in_a_process_of_its_own():
    said = software.ask_torch()
    assert isinstance(said, str)
    assert len(said.split()) == 3


def test_a_torch_that_crashes_while_loading_is_a_problem_with_its_last_words(monkeypatch, tmp_path):
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho 'OSError: libnccl.so.2: cannot open' >&2\nexit 3\n")
    python.chmod(python.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setattr(sys, "executable", str(python))
    advice = software.torch_build(software.ask_torch(), False)
    assert (advice.state, "libnccl" in advice.detail) == ("problem", True)


def test_no_gpu_is_a_note_and_a_failing_driver_is_a_problem():
    assert software.driver(None).state == "note"
    assert software.driver(Unreadable("NVML: Driver/library version mismatch")).state == "problem"
    library = SimpleNamespace(NVMLError=pynvml.NVMLError, nvmlSystemGetDriverVersion=lambda: "550.54.15")
    assert software.driver(Nvml(library, (0, 1))).detail == "2 GPUs, driver 550.54.15"


def test_a_question_that_hangs_is_given_up():
    began = time.monotonic()
    assert in_time(lambda: time.sleep(5), 0.1, "no answer") == "no answer"
    assert time.monotonic() - began < 2
    assert in_time(lambda: 7, 5, None) == 7


def test_a_missing_fio_is_a_problem_with_the_command_that_installs_it(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert (software.fio().state, software.fio().remedy) == ("problem", "apt-get install fio")


def test_a_scratch_that_is_not_there_is_one_problem(tmp_path):
    assert states(host.scratch_checks(tmp_path / "none")) == ["problem"]


def test_a_scratch_that_is_a_file_is_a_problem(tmp_path):
    (tmp_path / "file").write_text("x")
    assert states(host.scratch_checks(tmp_path / "file")) == ["problem"]


def test_a_scratch_that_nobody_may_write_is_a_problem():
    assert states(host.scratch_checks(Path("/proc/self"))) == ["problem"]


def test_too_little_room_is_a_problem(tmp_path):
    assert host.space(tmp_path, 1 << 30).state == "problem"
    assert host.space(tmp_path, 100 << 30).state == "ok"


def test_dockers_default_shared_memory_is_a_problem():
    assert host.shm_size(64 << 20).state == "problem"
    assert host.shm_size(16 << 30).state == "ok"
    assert host.shm_size(Unreadable("No such file or directory")).state == "problem"


def test_locked_memory_matters_where_there_is_rdma():
    few = {"limit.memlock": 65536, "limit.nofile": 1 << 20}
    assert states(host.limit_checks(few, rdma=True)) == ["problem", "ok"]
    assert states(host.limit_checks(few, rdma=False)) == ["ok", "ok"]
    assert states(host.limit_checks({"limit.memlock": "unlimited", "limit.nofile": 256}, rdma=True)) == [
        "ok",
        "problem",
    ]


@pytest.mark.parametrize(("kept", "state"), [(True, "ok"), (False, "note"), (Unreadable("adjtimex: denied"), "note")])
def test_a_clock_that_nobody_keeps_is_a_note(kept, state):
    assert host.clock(kept).state == state


def test_a_hostname_without_an_address_is_a_note_that_says_what_to_do():
    advice = host.hostname("no-such-host.invalid")
    assert advice.state == "note"
    assert "/etc/hosts" in advice.remedy
    assert host.hostname("localhost").state == "ok"


def test_a_cgroup_that_allows_less_than_the_cpus_shown_is_a_note():
    assert host.cpus(64, 8.0).state == "note"
    assert host.cpus(8, 8.0).state == "ok"
    assert host.cpus(8, Unreadable("no limit")).state == "ok"


def test_a_busy_machine_is_a_note_with_who_keeps_it_busy():
    busy = {"foreign.busy_cores": 3.0, "foreign.busiest": "backup (3.0 cores)"}
    assert (host.foreign_cpu(busy, 8).state, "backup" in host.foreign_cpu(busy, 8).detail) == ("note", True)
    assert host.foreign_cpu(busy, 64).state == "ok"


def test_a_gpu_that_others_hold_is_a_problem():
    processes = [SimpleNamespace(pid=1, usedGpuMemory=1), SimpleNamespace(pid=2, usedGpuMemory=1)]
    library = SimpleNamespace(
        NVMLError=pynvml.NVMLError,
        nvmlDeviceGetHandleByIndex=lambda index: index,
        nvmlDeviceGetComputeRunningProcesses=lambda handle: processes if handle else [],
    )
    advice = list(host.foreign_gpus(Nvml(library, (0, 1)), {1}))
    assert [(item.name, item.state) for item in advice] == [("gpu1", "problem")]
    assert advice[0].detail == "1 other processes hold it"
    assert list(host.foreign_gpus(None, set())) == []


def test_what_is_closed_to_the_tenant_is_named():
    seen = Access(
        kernel_log=False, pci_tree=True, may_mount=False, kernel_threads=False, virtual=True, container_signs=()
    )
    assert host.tier(seen).detail == "container; closed: kernel log, mounting"
