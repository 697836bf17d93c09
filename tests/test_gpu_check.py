"""gpu-check: says "not run" without a GPU, runs the very same path on a CPU, and needs five packages alone."""

import json
import os
import subprocess
import sys
import tempfile
import urllib.request
import venv
from pathlib import Path

import pytest
import torch

from hwlottery.cluster import Trial
from hwlottery.evidence import AnyReading, reading
from hwlottery.probes import PROBES, gpu_check
from hwlottery.probes.by_hand import one_node, trials_of, values_of
from hwlottery.probes.gpu_check_result import Check

ROOT = Path(__file__).resolve().parent.parent
ALONE = ("torch==2.13.0", "numpy", "psutil", "msgspec", "nvidia-ml-py")
# Every other package of hwlottery, and what comes with them but not with torch.
NOT_THERE = (
    *("click", "rich", "pandas", "distributed", "dask", "cryptography", "pydantic", "pydantic_core", "yaml"),
    *("pyarrow", "scipy", "pebble", "altair", "vl_convert", "ClusterShell"),
)
needs_no_gpu = pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")


def _check(*arguments: str, before: str = "", python: str = sys.executable) -> subprocess.CompletedProcess[str]:
    code = f"import sys; {before}\nfrom hwlottery.probes.gpu_check import main\nsys.exit(main(sys.argv[1:]))"
    return subprocess.run(
        [python, "-W", "error", "-c", code, *arguments],
        env={"PYTHONPATH": str(ROOT / ".src"), "PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/")},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


@needs_no_gpu
def test_without_a_gpu_it_says_not_run_and_that_is_no_failure() -> None:
    done = _check()
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0] == "not run: no CUDA device"
    assert json.loads(done.stdout.splitlines()[-1])["status"] == "not run"


def test_on_a_cpu_the_same_path_measures_or_says_why_not_with_none_of_the_other_packages() -> None:
    blocked = f"sys.modules.update(dict.fromkeys({NOT_THERE!r}))"
    done = _check("--device", "cpu", before=blocked)
    assert done.returncode == 0, done.stdout + done.stderr
    _holds_everything(json.loads(done.stdout.splitlines()[-1]))
    assert "burn_in.step" in done.stdout.splitlines()[-2] or "not measured" in done.stdout


def _holds_everything(document: dict[str, object]) -> None:
    """Each value that the probes announce is there or missing with a reason, and what is not tried is named."""
    assert document["status"] == "done"
    assert {"device", "driver", "torch", "date", "readings", "not_measured"} <= document.keys()
    cluster = one_node("cpu", 1, "/tmp")
    chosen = [(probe, gpu_check.SETTINGS["cpu"].get(probe.name)) for probe in PROBES]
    trials = [trial for probe, settings in chosen if settings for trial in trials_of(probe, cluster, settings)]
    announced = {_key(fill.metric, fill.params) for trial in trials for fill in trial.fills}
    told = [*document["readings"], *document["not_measured"]]
    assert announced <= {_key(each["metric"], each.get("params", {})) for each in told}
    assert {"inventory", "filesystem", "report"} <= {each["metric"] for each in told}
    assert all(each["reason"] for each in document["not_measured"])
    measured = {each["metric"] for each in document["readings"]}
    assert {"matmul.tflops", "matmul.mismatches", "memory.copy", "checkpoint.save", "burn_in.step"} <= measured


def _key(metric: str, params: dict[str, object]) -> tuple[str, str]:
    return metric, json.dumps(params, sort_keys=True)


def test_a_probe_that_raises_is_said_and_the_others_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[str] = []

    def breaks(trial: Trial, *_: object) -> list[AnyReading]:
        tried.append(trial.function)
        if trial.function.startswith("matmul"):
            raise RuntimeError("CUDA error: unspecified\nlaunch failure")
        return [reading(fill.metric, fill.subject, 1.0, **fill.params) for fill in trial.fills]

    check = _run_with(breaks, monkeypatch)
    assert "burn_in:train" in tried
    assert any("launch failure" in line for line in check.broken)
    assert {gap["reason"] for gap in check.missing} == {"raised"}
    assert all(row.metric.startswith("matmul") is False for row in check.readings)


def test_a_value_that_never_came_or_is_not_finite_breaks_the_check(monkeypatch: pytest.MonkeyPatch) -> None:
    def forgets(trial: Trial, *_: object) -> list[AnyReading]:
        _, *rest = trial.fills
        return [reading(fill.metric, fill.subject, float("nan"), **fill.params) for fill in rest[:1]]

    check = _run_with(forgets, monkeypatch)
    assert check.readings == []
    assert {gap["reason"] for gap in check.missing} == {"not_returned", "not_finite"}
    assert check.broken


def test_what_does_not_fit_into_the_time_is_not_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_check, "LIMIT_S", 0)
    check = _run_with(lambda *_: pytest.fail("begun"), monkeypatch)
    assert {gap["reason"] for gap in check.missing} == {"timeout"}
    assert check.broken


def _run_with(call: object, monkeypatch: pytest.MonkeyPatch) -> Check:
    monkeypatch.setattr(gpu_check, "call", call)
    check = Check(device="cpu")
    with tempfile.TemporaryDirectory() as scratch:
        gpu_check._run(check, scratch)
    return check


def test_a_broken_check_exits_with_one(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(gpu_check, "call", lambda *_: [])
    assert gpu_check.main(["--device", "cpu"]) == 1
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["status"] == "broken"


def test_a_hang_ends_with_what_there_is_and_leaves_nothing(tmp_path: Path) -> None:
    hang = (
        "import time; from hwlottery.probes import gpu_check; gpu_check.LIMIT_S = 1;"
        f"gpu_check._trials = lambda cluster: time.sleep(60); gpu_check.tempfile.tempdir = {str(tmp_path)!r}"
    )
    done = _check("--device", "cpu", before=hang)
    assert done.returncode == 1
    document = json.loads(done.stdout.splitlines()[-1])
    assert document["status"] == "broken"
    assert document["broken"] == ["still running after 1 s"]
    assert list(tmp_path.iterdir()) == []


def test_on_a_gpu_it_expects_to_end_well_before_six_minutes() -> None:
    cluster = one_node("cuda", 1, "/tmp")
    chosen = [(probe, gpu_check.SETTINGS["cuda"].get(probe.name)) for probe in PROBES]
    trials = [trial for probe, settings in chosen if settings for trial in trials_of(probe, cluster, settings)]
    assert {fill.metric for trial in trials for fill in trial.fills} >= {"memory.host_to_device", "burn_in.step"}
    assert len(values_of(fill for trial in trials for fill in trial.fills)) > 40
    assert sum(trial.expected_s for trial in trials) < 300
    assert gpu_check.LIMIT_S < 360


@pytest.mark.slow
@needs_no_gpu
@pytest.mark.timeout(900)
def test_five_packages_in_a_fresh_environment_are_enough(tmp_path: Path) -> None:
    venv.create(tmp_path / "venv", with_pip=True)
    python = tmp_path / "venv" / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "-q", *_cpu_index(), *ALONE], check=True, timeout=600)
    for arguments, status in (((), "not run"), (("--device", "cpu"), "done")):
        done = _check(*arguments, python=str(python))
        assert done.returncode == 0, done.stdout + done.stderr
        assert json.loads(done.stdout.splitlines()[-1])["status"] == status


def _cpu_index() -> list[str]:
    """The index of CPU builds, where it answers: PyPI's torch brings gigabytes of CUDA."""
    url = "https://download.pytorch.org/whl/cpu"
    try:
        urllib.request.urlopen(f"{url}/torch/", timeout=5).close()
    except OSError:
        return []
    return ["--extra-index-url", url]
