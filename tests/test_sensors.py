"""The sensors beside the work: what they tell, what they never invent, and that they stay out of the way."""

import os
import subprocess
import sys
import threading
import time
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pynvml
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hwlottery.evidence import Missing, Noticed, Observed, Reading, measured, metric, parse_subject, value_of
from hwlottery.sensors.files import Unreadable
from hwlottery.sensors.gpu_sensors import GpuCounters, GpuSensors
from hwlottery.sensors.health import Marks, Watched, readings_of
from hwlottery.sensors.host_sensors import (
    CpuTimes,
    HostSensors,
    OwnCpu,
    foreign_cores,
    parse_process,
    parse_stat,
    stolen_share,
)
from hwlottery.sensors.kernel_log import KernelLog, Xid, log_facts, parse_record, xids, xids_since
from hwlottery.sensors.nvml import Nvml
from hwlottery.sensors.sampler import Sampler
from hwlottery.sensors.windows import Sample, Tally, WindowBook, fold

NOON = datetime(2026, 1, 1, 12, 0, 30, tzinfo=UTC)


class Gpu:
    """A GPU under load as NVML shows it; attributes are changed as the test goes on. "none" raises Not Supported."""

    NVMLError = pynvml.NVMLError

    def __init__(self):
        self.temperature, self.milliwatts, self.clock, self.used, self.reasons = 65, 690000, 1755, 100, 0x4
        self.errors, self.rows = 7, (0, 0, 0, 0)
        self.hang = threading.Event()
        self.hang.set()

    def __getattr__(self, name):
        raise AttributeError(name)

    def nvmlDeviceGetHandleByIndex(self, index):  # noqa: N802
        return index

    def nvmlDeviceGetPciInfo(self, handle):  # noqa: N802
        return SimpleNamespace(busId="00000000:1B:00.0")

    def nvmlDeviceGetTemperature(self, handle, sensor):  # noqa: N802
        self.hang.wait(10)
        return self.temperature

    def nvmlDeviceGetPowerUsage(self, handle):  # noqa: N802
        if self.milliwatts is None:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)
        return self.milliwatts

    def nvmlDeviceGetClockInfo(self, handle, kind):  # noqa: N802
        return self.clock

    def nvmlDeviceGetUtilizationRates(self, handle):  # noqa: N802
        return SimpleNamespace(gpu=self.used, memory=0)

    def nvmlDeviceGetCurrentClocksEventReasons(self, handle):  # noqa: N802
        return self.reasons

    def nvmlDeviceGetTotalEccErrors(self, handle, kind, counter):  # noqa: N802
        if self.errors is None:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)
        return self.errors

    def nvmlDeviceGetRemappedRows(self, handle):  # noqa: N802
        return self.rows


def samples_of(gpu: Gpu) -> dict[str, Sample]:
    return {sample.quantity: sample for sample in GpuSensors("n01", Nvml(gpu, (0,))).sample()}


def test_a_gpu_under_load_is_sampled_in_the_units_of_the_catalogue():
    found = samples_of(Gpu())
    assert (found["temperature"].value, found["power"].value, found["clock"].value) == (65, 690.0, 1755)
    assert (found["utilisation"].value, found["throttled"].value, found["throttled"].bits) == (1.0, 0.0, 0x4)
    assert not any(sample.idle for sample in found.values())


def test_a_sensor_that_is_not_supported_gives_no_sample_and_not_zero():
    gpu = Gpu()
    gpu.milliwatts = None
    assert "power" not in samples_of(gpu)
    assert "temperature" in samples_of(gpu)


@pytest.mark.parametrize(
    ("reasons", "throttled"), [(0x4, 0), (0x4 | 0x8, 1), (0x20, 1), (0x40, 1), (0x80, 1), (0x2, 0)]
)
def test_throttling_is_told_by_bits_and_a_power_cap_is_none(reasons, throttled):
    gpu = Gpu()
    gpu.reasons = reasons
    assert samples_of(gpu)["throttled"].value == throttled


@pytest.mark.parametrize(("used", "reasons"), [(0, 0x4), (100, 0x1)])
def test_what_is_read_from_an_idle_gpu_is_marked_so(used, reasons):
    gpu = Gpu()
    gpu.used, gpu.reasons = used, reasons
    found = samples_of(gpu)
    assert found["clock"].idle
    assert found["power"].idle
    assert not found["temperature"].idle


def test_a_failed_remap_counts_as_a_pending_one():
    gpu = Gpu()
    gpu.rows = (0, 1, 0, 1)
    counters = GpuSensors("n01", Nvml(gpu, (0,))).counters()["n01/gpu0"]
    assert (counters.ecc_uncorrected, counters.remap_pending) == (7, True)


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=50))
def test_a_tally_holds_what_its_samples_say(values):
    tally = Tally()
    for value in values:
        tally.add(value, 1)
    assert (tally.minimum, tally.maximum, tally.count) == (min(values), max(values), len(values))
    assert tally.mean == pytest.approx(sum(values) / len(values), abs=1e-6)
    assert tally.minimum <= tally.mean <= tally.maximum
    assert tally.complete


def test_a_new_minute_closes_the_window_before_and_bits_are_ored():
    book = WindowBook("n01")
    book.add(NOON, [Sample("n01/gpu0", "throttled", 0.0, 0x4)])
    book.add(NOON + timedelta(seconds=1), [Sample("n01/gpu0", "throttled", 1.0, 0x8)])
    assert book.take() == []
    book.add(NOON + timedelta(seconds=40), [Sample("n01/gpu0", "throttled", 0.0)])
    (window,) = book.take()
    assert window.minute == NOON.replace(second=0)
    assert (window.minimum, window.mean, window.maximum, window.count, window.bits) == (0.0, 0.5, 1.0, 2, 0xC)
    assert book.take() == []
    book.close()
    assert [window.count for window in book.take()] == [1]


def test_cpu_times_are_read_with_guests_counted_once():
    tick = 1 / os.sysconf("SC_CLK_TCK")
    busy, stolen, total = parse_stat("cpu  100 10 50 1000 40 5 5 20 60 0\ncpu0 1 1 1\n")
    assert (busy, stolen, total) == (pytest.approx(170 * tick), pytest.approx(20 * tick), pytest.approx(1230 * tick))
    assert parse_stat("") is None
    assert parse_stat("intr 5") is None


def times(at, busy=0.0, stolen=0.0, total=0.0, own=0.0):
    return CpuTimes(at=at, busy=busy, stolen=stolen, total=total, own=own)


def test_shares_are_differences_and_none_over_too_short_a_time():
    before, after = times(10), times(20, busy=15, stolen=1, total=20, own=5)
    assert stolen_share(before, after) == pytest.approx(0.05)
    assert foreign_cores(before, after) == pytest.approx(1.0)
    assert foreign_cores(before, times(10.1, busy=1)) is None
    assert stolen_share(before, times(10.1, total=1)) is None
    assert foreign_cores(before, times(20, busy=5, own=9)) == 0.0


def test_a_process_name_may_hold_blanks_and_parentheses():
    stat = "42 (tmux: (a) b) S 7 42 42 0 -1 4194560 1 2 3 4 100 50 30 20 20 0 1 0 5000 1 1"
    row = parse_process(42, stat)
    tick = 1 / os.sysconf("SC_CLK_TCK")
    assert (row.parent, row.start) == (7, 5000)
    assert (row.own, row.children) == (pytest.approx(150 * tick), pytest.approx(50 * tick))
    assert parse_process(42, "") is None


def test_the_cpu_time_of_a_process_that_ended_stays_ours():
    with subprocess.Popen([sys.executable, "-S", "-c", "while True: pass"]) as busy:
        own = OwnCpu(lambda: {busy.pid})
        own.update()
        time.sleep(0.5)
        used = own.update()
        busy.kill()
    assert used > 0.1
    assert own.update() == used


def test_a_tool_that_our_rank_ran_and_waited_for_is_ours():
    script = (
        "import subprocess, sys; subprocess.run([sys.executable, '-S', '-c', 'for i in range(10**7): pass']); input()"
    )
    with subprocess.Popen([sys.executable, "-S", "-c", script], stdin=subprocess.PIPE) as rank:
        own = OwnCpu(lambda: {rank.pid})
        own.update()
        deadline = time.monotonic() + 20
        while own.update() < 0.1 and time.monotonic() < deadline:
            time.sleep(0.1)
        rank.kill()
    assert own.seconds >= 0.1


def test_a_host_without_sensors_gives_no_sample(tree):
    sensors = HostSensors("n01", set, tree({"proc/": ""}))
    assert sensors.cpu_times() is None
    assert list(sensors.sample(None)) == []


def test_cpu_clock_and_temperature_are_read_where_the_kernel_shows_them(tree):
    root = tree(
        {
            "sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq": "3100000",
            "sys/devices/system/cpu/cpu1/cpufreq/scaling_cur_freq": "800000",
            "sys/class/hwmon/hwmon0/name": "k10temp",
            "sys/class/hwmon/hwmon0/temp1_input": "71500",
            "sys/class/hwmon/hwmon1/name": "nvme",
            "sys/class/hwmon/hwmon1/temp1_input": "99000",
            "proc/loadavg": "1.50 1 1 1/200 5",
            "proc/meminfo": "MemTotal: 8 kB\nMemAvailable:    4 kB",
        }
    )
    found = {sample.quantity: sample.value for sample in HostSensors("n01", set, root).sample(None)}
    assert found == {"load": 1.5, "memory_available": 4096.0, "clock": 3100.0, "temperature": 71.5}


def marks(at, cost_s=0.0, ecc=0, remap=False, links=None, cpu=None):
    gpus = {"n01/gpu0": GpuCounters(ecc_uncorrected=ecc, remap_pending=remap)}
    return Marks(at=at, cost_s=cost_s, cpu=cpu, gpus=gpus, links=links or {})


def watched(first, last, samples=()):
    seen = Watched()
    seen.begun, seen.first, seen.last = first.at, first, last
    fold(seen.tallies, samples)
    return seen


def values(readings):
    return {item.metric: item.samples for item in readings if isinstance(item, Reading)}


def test_errors_count_by_their_difference_and_never_as_lifetime_totals():
    readings = readings_of("n01", watched(marks(0, ecc=7), marks(10, ecc=9)), True)
    assert values(readings)["health.ecc_uncorrected"] == (2.0,)
    assert [(item.kind, item.severity) for item in readings if isinstance(item, Noticed)] == [("ecc", "error")]
    assert values(readings_of("n01", watched(marks(0, ecc=7), marks(10, ecc=7)), True))["health.ecc_uncorrected"] == (
        0.0,
    )


@pytest.mark.parametrize(
    ("before", "after"), [(7, 0), (Unreadable("NVML: GPU is lost"), 3), (3, Unreadable("NVML: GPU is lost"))]
)
def test_a_counter_that_was_reset_or_not_read_is_missing_and_not_zero(before, after):
    readings = readings_of("n01", watched(marks(0, ecc=before), marks(10, ecc=after)), True)
    assert "health.ecc_uncorrected" not in values(readings)
    assert [item.metric for item in readings if isinstance(item, Missing)] == ["health.ecc_uncorrected"]


def test_sensors_that_came_late_count_no_errors():
    late = watched(marks(5, ecc=7), marks(10, ecc=7))
    late.begun = 0.0
    assert "health.ecc_uncorrected" not in values(readings_of("n01", late, True))
    once = marks(5)
    assert "health.ecc_uncorrected" not in values(readings_of("n01", watched(once, once), True))


def test_sensors_that_did_not_answer_say_so_and_give_no_counters():
    seen = Watched()
    readings = readings_of("n01", seen, False)
    assert [type(item) for item in readings] == [Noticed]
    assert "did not answer" in readings[0].detail


def test_throttling_is_a_share_of_the_readings_under_load_with_its_reasons():
    samples = [Sample("n01/gpu0", "throttled", float(on), 0x48 if on else 0x4) for on in (1, 0, 0, 0)]
    readings = readings_of("n01", watched(marks(0), marks(10), samples), True)
    assert values(readings)["health.throttled"] == (0.25,)
    (noticed,) = [item for item in readings if isinstance(item, Noticed)]
    assert (noticed.kind, noticed.detail) == (
        "throttle",
        "hardware slowdown, hardware thermal slowdown in 25% of 4 readings",
    )


@pytest.mark.parametrize("count", [3, 1500])
def test_each_reading_has_the_value_its_metric_asks_for_however_many_samples_there_were(count):
    samples = [
        Sample("n01/gpu0", name, float(place)) for place in range(count) for name in ("temperature", "power", "clock")
    ]
    readings = values(readings_of("n01", watched(marks(0), marks(10), samples), True))
    for name, expected in (("temperature", count - 1), ("power", (count - 1) / 2), ("clock", 0)):
        record = measured(metric=f"health.{name}", subject="n01/gpu0", samples=readings[f"health.{name}"])
        assert value_of(record) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("code", "severity"), [(79, "error"), (48, "error"), (999, "error"), (13, "warning"), (45, "warning")]
)
def test_an_xid_that_a_killed_program_leaves_is_a_warning_and_any_other_an_error(code, severity):
    seen = watched(marks(0), marks(10))
    seen.xids.append(("n01/gpu0", Xid(code=code, pci="0000:1b:00", text="", uptime_s=1.0)))
    (noticed,) = [item for item in readings_of("n01", seen, True) if isinstance(item, Noticed)]
    assert (noticed.kind, noticed.subject, noticed.severity) == ("xid", "n01/gpu0", severity)


def test_a_link_that_fell_during_the_work_is_noticed():
    before, after = {"mlx5_0": 3}, {"mlx5_0": 4, "new": 9}
    readings = readings_of("n01", watched(marks(0, links=before), marks(10, links=after)), True)
    assert [(item.kind, item.subject) for item in readings if isinstance(item, Noticed)] == [
        ("link_down", "n01/mlx5_0")
    ]


def test_every_reading_names_a_metric_and_a_subject_it_may_have():
    cpu = (times(0), times(10, busy=9, total=20))
    samples = [Sample("n01/gpu0", name, 1.0) for name in ("temperature", "power", "clock", "throttled")]
    samples += [Sample("n01", name, 1.0) for name in ("temperature", "clock", "load")]
    readings = readings_of("n01", watched(marks(0, cpu=cpu[0]), marks(10, cpu=cpu[1]), samples), True)
    named = {item.metric for item in readings if isinstance(item, Reading)}
    assert {"health.cpu_steal", "health.foreign_cpu", "health.sensor_cost", "health.remap_pending"} <= named
    for item in readings:
        if isinstance(item, Reading):
            assert parse_subject(item.subject).kind in metric(item.metric).subjects


def record(line: str, number: int = 1) -> str:
    return f"4,{number},{number}000000,-;{line}"


def test_an_xid_is_read_with_its_gpu_in_its_old_and_new_forms():
    new = parse_record(record("NVRM: Xid (PCI:0000:9B:00): 79, pid='<unknown>', GPU has fallen off the bus."))
    assert (new.code, new.pci, new.uptime_s) == (79, "0000:9b:00", 1.0)
    old = parse_record(record("NVRM: Xid (0000:03:00): 14, Channel 00000001"))
    assert (old.code, old.pci) == (14, "0000:03:00")
    assert parse_record(record("nvidia-nvswitch1: SXid (PCI:0000:06:00.0): 20034, Fatal, Link 48")) is None
    assert parse_record("") is None


@pytest.mark.parametrize(
    ("name", "codes"),
    [
        ("04_xid79_with_sxid20034.txt", [79]),
        ("01_xid119_gsp_timeout_h100.txt", [119] * 5),
        ("10_old_forms_no_pci_prefix.txt", [14, 31, 32, 32]),
        ("16_119_120_109_137.txt", [109, 119, 120, 120, 137]),
    ],
)
def test_the_xids_of_recorded_kernel_logs_are_counted(recorded, name, codes):
    lines = (recorded / "xid_dmesg" / name).read_text().splitlines()
    found = xids(record(line, number) for number, line in enumerate(lines, 1))
    assert sorted(xid.code for xid in found) == codes


def test_what_the_kernel_log_held_before_is_a_count_or_a_reason(tree, monkeypatch):
    assert isinstance(log_facts(tree({"dev/": ""}))["kernel_log.xids"], Unreadable)
    lines = [record(f"NVRM: Xid (PCI:0000:1b:00): {code}, x") for code in (79, 48, 79)]
    monkeypatch.setattr(KernelLog, "new_records", lambda log: lines)
    found = log_facts(tree({"dev/kmsg": ""}))
    assert found == {"kernel_log.xids": 3, "kernel_log.xid_codes": "48 x1, 79 x2"}


def test_a_kernel_log_that_is_closed_is_unreadable_and_not_empty(tree):
    assert isinstance(KernelLog.open(tree({"dev/": ""})), Unreadable)
    assert isinstance(xids_since(60, tree({"dev/": ""})), Unreadable)


@pytest.mark.root
def test_only_what_is_logged_after_opening_is_seen():
    log = KernelLog.open()
    if isinstance(log, Unreadable):
        pytest.skip(f"the kernel log is closed here: {log.why}")
    assert log.new_xids() == []
    with open("/dev/kmsg", "w") as kernel:  # noqa: PTH123  # the device takes one write a record
        kernel.write("NVRM: Xid (PCI:0000:fe:00): 13, hwlottery test line\n")
    (xid,) = next(filter(None, iter(log.new_xids, None)))
    assert (xid.code, xid.pci) == (13, "0000:fe:00")
    assert log.new_xids() == []
    log.close()
    assert [xid.code for xid in xids_since(60) if "hwlottery test line" in xid.text][-1:] == [13]


def watched_facts(readings) -> list[tuple[str, object]]:
    return [(item.key, item.value) for item in readings if isinstance(item, Observed)]


def test_that_the_kernel_log_is_watched_is_said_once_and_taken_back_when_it_no_longer_is(sampler, tree):
    one = sampler(period_s=0.02, root=tree({"dev/kmsg": ""}))
    assert watched_facts(one.end(one.begin())) == [("kernel_log.watched", True)]
    assert watched_facts(one.end(one.begin())) == []
    one._log = Unreadable("Permission denied: /dev/kmsg")
    for _ in range(2):  # and it stays so
        told = watched_facts(one.end(one.begin()))
        assert told in ([("unreadable.kernel_log.watched", "Permission denied: /dev/kmsg")], [])
    assert isinstance(one._told.value, str)


def test_an_xid_between_two_works_is_told_with_the_next(sampler, monkeypatch):
    one = sampler(period_s=0.02)
    wait_for_a_look(one)
    xid = Xid(code=79, pci="0000:1b:00", text="GPU has fallen off the bus.", uptime_s=1.0)
    arriving = [[xid]]
    monkeypatch.setattr(one, "_log", SimpleNamespace(new_xids=lambda: arriving.pop() if arriving else [], lost=False))
    time.sleep(0.1)
    assert arriving == []
    for told in ([79], []):
        readings = one.end(one.begin())
        assert [int(item.detail.split()[1]) for item in readings if getattr(item, "kind", "") == "xid"] == told


def test_a_closed_kernel_log_is_said(sampler, tree):
    one = sampler(period_s=0.02, root=tree({"dev/": ""}))
    ((key, why),) = watched_facts(one.end(one.begin()))
    assert (key, "No such file" in why) == ("unreadable.kernel_log.watched", True)


@pytest.fixture
def sampler():
    made = []

    def make(gpu=None, **options):
        opened = Nvml(gpu, (0,)) if gpu else None
        made.append(Sampler(node="n01", own_pids=lambda: {os.getpid()}, gpus=lambda: opened, **options))
        made[-1].start()
        return made[-1]

    yield make
    for one in made:
        one.stop()


def wait_for_a_look(one: Sampler) -> None:
    one.end(one.begin())


def test_work_on_a_gpu_is_told_by_what_happened_during_it(sampler):
    gpu = Gpu()
    one = sampler(gpu, period_s=0.02)
    wait_for_a_look(one)
    token = one.begin()
    time.sleep(0.1)
    gpu.errors, gpu.temperature, gpu.reasons = 8, 91, 0x40
    time.sleep(0.1)
    gpu.temperature, gpu.used = 40, 0
    time.sleep(0.1)  # a clock falls after the load does
    gpu.clock = 345
    time.sleep(0.05)
    readings = one.end(token)
    found = values([item for item in readings if getattr(item, "subject", "") == "n01/gpu0"])
    assert max(found["health.temperature"]) == 91
    assert min(found["health.clock"]) == 1755  # the clock after the work is not the work's
    assert found["health.ecc_uncorrected"] == (1.0,)
    assert 0 < found["health.throttled"][0] < 1
    assert {item.kind for item in readings if isinstance(item, Noticed)} >= {"throttle", "ecc"}


def test_two_stretches_at_once_each_have_their_own(sampler):
    gpu = Gpu()
    one = sampler(gpu, period_s=0.02)
    wait_for_a_look(one)
    outer = one.begin()
    time.sleep(0.06)
    gpu.errors = 9
    time.sleep(0.06)
    inner = one.begin()
    time.sleep(0.06)
    assert values(one.end(inner))["health.ecc_uncorrected"] == (0.0,)
    assert values(one.end(outer))["health.ecc_uncorrected"] == (2.0,)


def test_a_driver_that_hangs_stalls_the_sensors_and_not_the_work(sampler):
    gpu = Gpu()
    one = sampler(gpu, period_s=0.02)
    wait_for_a_look(one)
    gpu.hang.clear()
    time.sleep(0.05)
    began = time.monotonic()
    token = one.begin()
    assert time.monotonic() - began < 0.1
    readings = one.end(token)
    assert time.monotonic() - began < 1.5
    gpu.hang.set()
    assert [key for key, _ in watched_facts(readings)] == ["unreadable.kernel_log.watched"]
    readings = [item for item in readings if isinstance(item, Noticed)]
    assert [item.kind for item in readings] == ["note"]
    assert "did not answer" in readings[0].detail


def test_a_library_that_raises_costs_the_sensors_and_is_said(sampler):
    gpu = Gpu()
    gpu.nvmlDeviceGetUtilizationRates = lambda handle: None
    one = sampler(gpu, period_s=0.02)
    token = one.begin()
    time.sleep(0.1)
    (noticed,) = [item for item in one.end(token) if isinstance(item, Noticed)]
    assert noticed.kind == "note"
    assert "AttributeError" in noticed.detail


def test_the_sensors_of_this_machine_cost_less_than_half_a_percent(sampler):
    one = sampler(period_s=1.0)
    wait_for_a_look(one)
    token = one.begin()
    time.sleep(3)
    readings = values(one.end(token))
    assert 0 < readings["health.sensor_cost"][0] < 0.005
    assert readings["health.foreign_cpu"][0] >= 0


def test_somebody_elses_load_is_seen_and_ours_is_not():
    with subprocess.Popen([sys.executable, "-S", "-c", "while True: pass"]) as busy:
        # Side by side over the same time, for other work on this machine comes and goes.
        both = [
            Sampler(node="n01", own_pids=lambda pids=pids: pids, gpus=lambda: None)
            for pids in ({os.getpid()}, {os.getpid(), busy.pid})
        ]
        for one in both:
            one.start()
        tokens = [one.begin() for one in both]
        time.sleep(1.5)
        theirs, ours = (
            values(one.end(token))["health.foreign_cpu"][0] for one, token in zip(both, tokens, strict=True)
        )
        busy.kill()
    for one in both:
        one.stop()
    assert theirs - ours > 0.1


def test_windows_of_this_machine_can_be_taken_once(sampler):
    one = sampler(period_s=0.05)
    time.sleep(0.3)
    one.stop()
    windows = one.take_windows()
    assert {"load", "memory_available"} <= {window.quantity for window in windows}
    assert {window.node for window in windows} == {"n01"}
    assert all(window.minimum <= window.mean <= window.maximum for window in windows)
    assert one.take_windows() == []
