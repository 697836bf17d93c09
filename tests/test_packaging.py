"""What is shipped: one package, with its data, that works where it is installed."""

import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel, built from a copy of the files under version control by the real build backend."""
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)],
        check=True,
        capture_output=True,
    )
    (built,) = folder.glob("*.whl")
    return built


def test_the_wheels_only_top_level_is_hwlottery(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    tops = {name.partition("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"hwlottery"}


def test_every_python_and_data_file_of_the_package_is_in_the_wheel(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    outside = ("tests/", "bench/", "docs/", "sample_results/", ".ci/", ".src")
    ours = [name for name in tracked if "/" in name and not name.startswith(outside) and (ROOT / name).is_file()]
    assert [name for name in ours if f"hwlottery/{name}" not in names] == []
    assert "hwlottery/probes/profiles/smoke.yaml" in names
    assert "hwlottery/scoring/policies/smoke.yaml" in names


def test_no_test_or_cache_is_in_the_wheel(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    assert [
        name
        for name in names
        if Path(name).name.startswith("test_") or "tests" in Path(name).parts or "__pycache__" in name
    ] == []


@pytest.mark.slow
def test_an_installed_wheel_runs_its_command_from_anywhere(wheel, tmp_path):
    """Dependencies are borrowed from this environment; the package itself comes from the wheel alone."""
    venv.create(tmp_path / "env", with_pip=True)
    python = tmp_path / "env" / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "-q", "--no-deps", str(wheel)], check=True)
    site = subprocess.run(
        [python, "-c", "import site; print(site.getsitepackages()[0])"], capture_output=True, text=True, check=True
    ).stdout.strip()
    borrowed = [path for path in sys.path if path.endswith("site-packages")]
    (Path(site) / "borrowed.pth").write_text("\n".join(borrowed))
    shown = subprocess.run(
        [python, "-c", "import hwlottery; print(hwlottery.__file__)"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=True,
    )
    assert shown.stdout.startswith(site)
    plan = subprocess.run(
        [tmp_path / "env" / "bin" / "hwlottery", "run", "--dry-run"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
    )
    assert plan.returncode == 0, plan.stderr
    assert "burn_in" in plan.stdout
