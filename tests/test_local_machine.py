"""What this machine is taken for before anything runs on it."""

import pynvml
import pytest

from hwlottery.cluster.local import gpu_count, gpus_on_bus, promised_here


class FakeNvml:
    """NVML as a driver answers: a count, or an error at the first call."""

    NVMLError = pynvml.NVMLError
    NVMLError_LibraryNotFound = pynvml.NVMLError_LibraryNotFound
    NVMLError_DriverNotLoaded = pynvml.NVMLError_DriverNotLoaded

    def __init__(self, answer):
        self.answer = answer

    def nvmlInit(self):  # noqa: N802  # NVML's own name
        if isinstance(self.answer, int) and self.answer >= 100:
            raise pynvml.NVMLError(self.answer - 100)

    def nvmlDeviceGetCount(self):  # noqa: N802  # NVML's own name
        return self.answer

    def nvmlShutdown(self):  # noqa: N802  # NVML's own name
        pass


def failing(code):
    return FakeNvml(100 + code)


@pytest.fixture
def bus_with_two_gpus(tree):
    return tree(
        {
            "a/vendor": "0x10de",
            "a/class": "0x030200",
            "b/vendor": "0x10de",
            "b/class": "0x030000",
            "audio/vendor": "0x10de",
            "audio/class": "0x040300",
            "nic/vendor": "0x15b3",
            "nic/class": "0x020700",
        }
    )


def test_every_gpu_that_the_driver_shows_is_promised(monkeypatch, tmp_path):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert gpu_count(FakeNvml(8), tmp_path) == 8


@pytest.mark.parametrize(("visible", "count"), [("0,3", 2), ("", 0), ("-1", 0), ("0", 1), ("GPU-5, GPU-6", 2)])
def test_what_cuda_may_not_see_is_not_promised(monkeypatch, tmp_path, visible, count):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert gpu_count(FakeNvml(8), tmp_path) == count


def test_a_machine_without_the_drivers_library_is_a_cpu_node(bus_with_two_gpus):
    assert gpu_count(failing(pynvml.NVML_ERROR_LIBRARY_NOT_FOUND), bus_with_two_gpus) == 0
    assert gpu_count(failing(pynvml.NVML_ERROR_DRIVER_NOT_LOADED), bus_with_two_gpus) == 0


def test_a_driver_that_fails_does_not_make_a_gpu_machine_a_cpu_node(monkeypatch, bus_with_two_gpus):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    for code in (pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH, pynvml.NVML_ERROR_UNKNOWN, pynvml.NVML_ERROR_GPU_IS_LOST):
        assert gpu_count(failing(code), bus_with_two_gpus) == 2


def test_only_display_and_3d_controllers_of_nvidia_count_on_the_bus(bus_with_two_gpus, tmp_path):
    assert gpus_on_bus(bus_with_two_gpus) == 2
    assert gpus_on_bus(tmp_path / "no-bus") == 0


def test_this_machine_is_promised_with_a_name_that_is_a_subject():
    from hwlottery.evidence import parse_subject

    node = promised_here(2)
    assert parse_subject(node.node).kind == "node"
    assert [parse_subject(f"{node.node}/{rank}").nodes for rank in node.ranks] == [(node.node,)] * len(node.ranks)
