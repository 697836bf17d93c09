"""What is sampled of each GPU beside running work, by NVML, and the counters whose difference tells of errors."""

from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from .files import Unreadable
from .nvml import IDLE, THROTTLED, Nvml
from .windows import Sample

_TEMPERATURE_GPU, _CLOCK_SM, _CLOCK_MEMORY = 0, 1, 2  # NVML_TEMPERATURE_GPU, NVML_CLOCK_SM, NVML_CLOCK_MEM
_UNCORRECTED, _VOLATILE = 1, 0  # NVML_MEMORY_ERROR_TYPE_UNCORRECTED, NVML_VOLATILE_ECC
# quantity, function, its further arguments, unit of its answer
_SENSORS: tuple[tuple[str, str, tuple[Any, ...], float], ...] = (
    ("temperature", "nvmlDeviceGetTemperature", (_TEMPERATURE_GPU,), 1.0),
    ("power", "nvmlDeviceGetPowerUsage", (), 0.001),
    ("clock", "nvmlDeviceGetClockInfo", (_CLOCK_SM,), 1.0),
    ("memory_clock", "nvmlDeviceGetClockInfo", (_CLOCK_MEMORY,), 1.0),
)


class GpuCounters(Struct, frozen=True, kw_only=True):
    """Counters of one GPU at a moment. `remap_pending` is also true where a remap has failed."""

    ecc_uncorrected: int | Unreadable
    remap_pending: bool | Unreadable


class GpuSensors:
    """The sensors of all GPUs that CUDA shows, by subject NODE/gpuN. One that does not answer gives no sample."""

    def __init__(self, node: str, nvml: Nvml) -> None:
        self._nvml = nvml
        self.subjects = tuple(f"{node}/gpu{index}" for index in range(nvml.count))
        addresses = [nvml.pci(index) for index in range(nvml.count)]
        self._by_address = {
            address.rpartition(".")[0]: subject
            for address, subject in zip(addresses, self.subjects, strict=True)
            if isinstance(address, str)
        }

    def at(self, address: str) -> str | None:
        """The GPU at a PCI address without function (0000:1b:00), as the kernel log names it."""
        return self._by_address.get(address)

    def sample(self) -> Iterator[Sample]:
        """Temperature (C), power (W), clocks (MHz), use (share), and whether the GPU is throttled, with all reasons."""
        for index, subject in enumerate(self.subjects):
            yield from self._sample(index, subject)

    def _sample(self, index: int, subject: str) -> Iterator[Sample]:
        bits = self._reasons(index)
        use = self._nvml.gpu(index, "nvmlDeviceGetUtilizationRates")
        # What is not known to be under load is not counted as the work's.
        idle = isinstance(bits, Unreadable) or bool(bits & IDLE) or isinstance(use, Unreadable) or not use.gpu
        for quantity, function, more, unit in _SENSORS:
            answer = self._nvml.gpu(index, function, *more)
            if not isinstance(answer, Unreadable):
                yield Sample(subject, quantity, float(answer) * unit, idle=idle and quantity != "temperature")
        if not isinstance(use, Unreadable):
            yield Sample(subject, "utilisation", use.gpu / 100)
        if not isinstance(bits, Unreadable):
            yield Sample(subject, "throttled", float(bool(bits & THROTTLED)), bits, idle=idle)

    def _reasons(self, index: int) -> int | Unreadable:
        """The clock event reasons, under the name they had before driver 535 too."""
        for function in ("nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"):
            bits = self._nvml.gpu(index, function)
            if not isinstance(bits, Unreadable):
                return int(bits)
        return Unreadable("NVML tells no clock event reasons")

    def counters(self) -> dict[str, GpuCounters]:
        """The error counters of each GPU now."""
        return {subject: self._counters(index) for index, subject in enumerate(self.subjects)}

    def _counters(self, index: int) -> GpuCounters:
        errors = self._nvml.gpu(index, "nvmlDeviceGetTotalEccErrors", _UNCORRECTED, _VOLATILE)
        rows = self._nvml.gpu(index, "nvmlDeviceGetRemappedRows")
        return GpuCounters(
            ecc_uncorrected=errors if isinstance(errors, Unreadable) else int(errors),
            remap_pending=rows if isinstance(rows, Unreadable) else bool(rows[2] or rows[3]),
        )
