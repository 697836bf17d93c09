"""The bundle: what is in it, when it is refused, and how it runs where only a Python with torch is."""

import hashlib
import importlib.metadata
import json
import os
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest
from image import image_python

from hwlottery.cluster import bundle_main
from hwlottery.cluster.bundle import load_bundle, make_bundle
from hwlottery.cluster.bundle_main import Refused, receive, unpack
from hwlottery.cluster.bundle_wheels import NODE, platforms_of, unmet
from hwlottery.cluster.own_wheel import own_wheel, packed_again
from hwlottery.evidence import RunError

# What drives a run at the head; a node never imports it.
OF_THE_HEAD = {"hwlottery.evidence.user_files", "hwlottery.probes.profiles"}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return make_bundle(tmp_path_factory.mktemp("made") / "bundle.pyz")


@pytest.fixture(scope="module")
def image(tmp_path_factory):
    return image_python(tmp_path_factory.mktemp("image") / "python")


def run_from(bundle, python, *words, env=None, **options):
    """Run the image's Python from the bundle, with nothing of ours in its environment."""
    given = {"PATH": os.environ["PATH"], **(env or {})}
    return subprocess.run(
        [python, bundle, *words], capture_output=True, text=True, env=given, check=False, timeout=120, **options
    )


@pytest.mark.slow
class TestMade:
    """A real bundle, made from a package index."""

    def test_it_holds_what_nodes_need_in_the_versions_that_are_here_and_no_torch(self, made):
        versions = {wheel.name.replace("_", "-").lower(): wheel.version for wheel in made.manifest.wheels}
        assert set(NODE) <= set(versions)
        assert "hwlottery" in versions
        assert not {"torch", "sympy", "pandas", "scipy", "altair", "pyarrow", "triton"} & set(versions)
        for name in versions.keys() - {"hwlottery"}:
            assert importlib.metadata.version(name) == versions[name]
        assert made.size < 40e6

    def test_it_runs_on_machines_with_an_older_glibc(self, made):
        for wheel in made.manifest.wheels:
            assert "manylinux_2_34" not in wheel.file

    def test_made_again_it_is_the_same_to_the_byte(self, made, tmp_path):
        assert make_bundle(tmp_path / "again.pyz").sha256 == made.sha256

    def test_each_module_of_a_node_imports_with_the_bundle_and_torch_alone(self, made, image):
        script = """
import importlib, pkgutil, sys
names = ["hwlottery.runner.telemetry", "hwlottery.runner.identify"]
for folder in ("cluster", "sensors", "readers", "probes", "evidence", "fabric"):
    package = importlib.import_module("hwlottery." + folder)
    names += [found.name for found in pkgutil.walk_packages(package.__path__, package.__name__ + ".")]
for name in names:
    if name not in sys.argv[1:]:
        importlib.import_module(name)
print(len(names))
"""
        done = run_from(made.path, image, "-c", script, *OF_THE_HEAD)
        assert done.returncode == 0, done.stderr
        assert int(done.stdout) > 60

    def test_the_images_own_numpy_is_kept_and_ours_serves_where_there_is_none(self, made, image, tmp_path):
        script = "import numpy; print(numpy.__file__)"
        assert "/hwlottery-bundle-" in run_from(made.path, image, "-c", script).stdout
        with_numpy = image_python(tmp_path / "python", "numpy")
        assert run_from(made.path, with_numpy, "-c", script).stdout.startswith(str(tmp_path / "python"))

    def test_an_older_hwlottery_of_the_image_gives_way(self, made, image, tmp_path):
        (tmp_path / "hwlottery").mkdir()
        (tmp_path / "hwlottery" / "__init__.py").write_text("__version__ = '0.0.1'")
        script = "import hwlottery, importlib.metadata as m; print(hwlottery.__version__, m.version('hwlottery'))"
        done = run_from(made.path, image, "-c", script, env={"PYTHONPATH": str(tmp_path)})
        assert done.stdout.split() == [made.manifest.hwlottery] * 2

    def test_it_gives_back_the_exit_code_and_leaves_nothing(self, made, image, tmp_path):
        done = run_from(made.path, image, "-c", "import sys; sys.exit(5)", env={"TMPDIR": str(tmp_path)})
        assert done.returncode == 5
        assert list(tmp_path.iterdir()) == []

    def test_once_removes_the_bundle_too_with_the_folder_made_for_it(self, made, image, tmp_path):
        place = tmp_path / "place" / "bundle.pyz"
        place.parent.mkdir()
        place.write_bytes(made.path.read_bytes())
        done = run_from(place, image, "--once", "-c", "import hwlottery; print('here')", env={"TMPDIR": str(tmp_path)})
        assert done.stdout == "here\n"
        assert list(tmp_path.iterdir()) == []

    def test_stopped_it_removes_its_folder_even_under_a_child_that_goes_on(self, made, image, tmp_path):
        """The child here ignores the signal: it is killed after the grace that is given to it."""
        deaf = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN)"
        script = f"{deaf}; print('up', flush=True); time.sleep(99)"
        short = bundle_main._GRACE_S
        assert 5 <= short <= 20, "Slurm kills 30 s after it has asked"
        with subprocess.Popen(
            [image, made.path, "-c", script],
            stdout=subprocess.PIPE,
            env={"PATH": os.environ["PATH"], "TMPDIR": str(tmp_path)},
        ) as running:
            assert running.stdout is not None
            assert running.stdout.readline() == b"up\n"
            assert list(tmp_path.iterdir()) != []
            began = time.monotonic()
            running.send_signal(signal.SIGTERM)
            assert running.wait(timeout=40) == 128 + signal.SIGKILL
        assert time.monotonic() - began < short + 10
        assert list(tmp_path.iterdir()) == []

    def test_one_for_another_python_is_refused_with_both_versions(self, image, tmp_path):
        made = make_bundle(tmp_path / "bundle.pyz", python="3.13")
        assert {wheel.file.split("-")[-3] for wheel in made.manifest.wheels} <= {
            "cp313",
            "py3",
            "py2.py3",
            "cp311",
            "cp36",
        }
        done = run_from(made.path, image, "-c", "print('ran')")
        assert done.returncode == 1
        (line,) = done.stderr.splitlines()
        assert "has Python 3.11" in line
        assert "the bundle is for 3.13" in line

    def test_what_is_not_on_the_index_for_a_python_is_one_line(self, tmp_path):
        with pytest.raises(RunError, match=r"pip download: (Could not find|Cannot install)") as caught:
            make_bundle(tmp_path / "bundle.pyz", python="3.99")
        assert "\n" not in str(caught.value)
        assert list(tmp_path.iterdir()) == []


def small(path, content, **changes):
    """A bundle of these wheels, by name: what is in each."""
    folder = path.parent / "wheels"
    folder.mkdir(exist_ok=True)
    listed = []
    for name, files in content.items():
        with zipfile.ZipFile(folder / name, "w") as wheel:
            for inner, text in files.items():
                wheel.writestr(inner, text)
        sha256 = hashlib.sha256((folder / name).read_bytes()).hexdigest()
        listed.append({"file": name, "name": name.split("-")[0], "version": "1", "sha256": sha256, "unless": None})
    manifest = {
        "format": 1,
        "hwlottery": importlib.metadata.version("hwlottery"),
        "python": "{}.{}".format(*sys.version_info[:2]),
        "platform": f"manylinux_2_28_{os.uname().machine}",
        "head": False,
        "wheels": listed,
        **changes,
    }
    with zipfile.ZipFile(path, "w") as out:
        out.writestr("__main__.py", Path(bundle_main.__file__).read_bytes())
        out.writestr("manifest.json", json.dumps(manifest))
        for name in content:
            out.writestr(f"wheels/{name}", (folder / name).read_bytes())
    return path


PLAIN = {"x-1-py3-none-any.whl": {"x.py": "WHO = 'x'"}}


def test_a_whole_bundle_loads(tmp_path):
    found = load_bundle(small(tmp_path / "b.pyz", PLAIN))
    assert found.size == (tmp_path / "b.pyz").stat().st_size
    assert found.sha256 == hashlib.sha256((tmp_path / "b.pyz").read_bytes()).hexdigest()


def flip(path, at):
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("at", range(40, 900, 97))
def test_a_damaged_bundle_is_refused_in_one_line(tmp_path, at):
    path = small(tmp_path / "b.pyz", PLAIN)
    flip(path, path.stat().st_size - at)
    with pytest.raises(RunError, match="make it again") as caught:
        load_bundle(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"hwlottery": "0.0.9"}, "is of hwlottery 0.0.9"),
        ({"format": 2}, "format is 2"),
        (
            {"wheels": [{"file": "../x.whl", "name": "x", "version": "1", "sha256": "0", "unless": None}]},
            "damaged|whole",
        ),
        ({"wheels": []}, "damaged"),
        ({"python": None}, "no whole bundle"),
    ],
)
def test_a_bundle_whose_manifest_does_not_fit_is_refused(tmp_path, changes, says):
    with pytest.raises(RunError, match=says):
        load_bundle(small(tmp_path / "b.pyz", PLAIN, **changes))


def test_what_is_no_bundle_is_refused(tmp_path):
    (tmp_path / "text").write_text("hello")
    for path in (tmp_path / "text", tmp_path / "absent", tmp_path):
        with pytest.raises(RunError):
            load_bundle(path)


def test_the_command_refuses_a_damaged_bundle_before_anything_runs(tmp_path):
    path = small(tmp_path / "b.pyz", PLAIN)
    flip(path, path.stat().st_size - 300)
    out = tmp_path / "run"
    words = ["run", "--hosts", "nowhere", "--bundle", path, "--out", out]
    done = subprocess.run(
        [sys.executable, "-m", "hwlottery", *map(str, words)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert len(done.stderr.strip().splitlines()) == 1
    assert not out.exists()


def test_a_bundle_without_hosts_is_refused_with_what_it_goes_with():
    done = subprocess.run(
        [sys.executable, "-m", "hwlottery", "run", "--bundle", "auto"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "--hosts" in done.stderr


def test_a_node_refuses_a_wheel_that_is_not_what_the_manifest_says(tmp_path):
    path = small(tmp_path / "b.pyz", PLAIN, wheels=[{"file": next(iter(PLAIN)), "sha256": "0" * 64, "unless": None}])
    with pytest.raises(Refused, match="not what its manifest says"):
        unpack(path, tmp_path / "site")
    assert not (tmp_path / "site").exists()


@pytest.mark.parametrize("where", ["manylinux_2_99_x86_64", "manylinux_2_28_riscv64"])
def test_a_node_with_an_older_glibc_or_another_machine_says_so(tmp_path, where):
    with pytest.raises(Refused, match=f"the bundle is for {where}"):
        unpack(small(tmp_path / "b.pyz", PLAIN, platform=where), tmp_path / "site")
    assert not (tmp_path / "site").exists()


@pytest.mark.parametrize("name", ["../evil.py", "/evil.py", "x/../../evil.py", "x-1.data/purelib/../../../evil.py"])
def test_no_path_in_a_wheel_leads_out_of_the_folder(tmp_path, name):
    path = small(tmp_path / "b.pyz", {"x-1-py3-none-any.whl": {name: "evil"}})
    with pytest.raises(Refused, match="leads out"):
        unpack(path, tmp_path / "deep" / "site")
    assert list(tmp_path.rglob("evil.py")) == []


def test_data_of_a_wheel_goes_where_installers_put_it_and_scripts_nowhere(tmp_path):
    files = {"x-1.data/purelib/x.py": "", "x-1.data/platlib/y.so": "", "x-1.data/scripts/run": "", "x/z.py": ""}
    unpack(small(tmp_path / "b.pyz", {"x-1-py3-none-any.whl": files}), tmp_path / "site")
    found = {str(file.relative_to(tmp_path / "site")) for file in (tmp_path / "site").rglob("*") if file.is_file()}
    assert found == {"x.py", "y.so", "x/z.py"}


def through_pipe(content, size, sha256, place):
    reading, writing = os.pipe()
    os.write(writing, content)
    os.close(writing)
    before = os.dup(0)
    os.dup2(reading, 0)
    try:
        receive(size, sha256, place)
        return os.read(0, 100)
    finally:
        os.dup2(before, 0)
        os.close(before)
        os.close(reading)


def test_what_follows_the_bundle_on_stdin_is_left_for_the_worker(tmp_path):
    digest = hashlib.sha256(b"bundle").hexdigest()
    assert through_pipe(b"bundlesummons", 6, digest, tmp_path / "b") == b"summons"
    assert (tmp_path / "b").read_bytes() == b"bundle"


@pytest.mark.parametrize(("content", "says"), [(b"bund", "broke off"), (b"bumble", "damaged on its way")])
def test_a_bundle_that_breaks_off_or_is_changed_on_its_way_is_refused(tmp_path, content, says):
    with pytest.raises(Refused, match=says):
        through_pipe(content, 6, hashlib.sha256(b"bundle").hexdigest(), tmp_path / "b")


@pytest.mark.slow
def test_a_wheel_packed_again_from_an_installation_holds_what_the_first_one_held(tmp_path):
    first = own_wheel(tmp_path)
    site = tmp_path / "site"
    words = ["install", "--quiet", "--no-deps", "--target", str(site), str(first)]
    subprocess.run([sys.executable, "-m", "pip", *words], check=True, capture_output=True)
    (installed,) = importlib.metadata.distributions(name="hwlottery", path=[str(site)])
    (tmp_path / "again").mkdir()
    again = packed_again(installed, tmp_path / "again")
    assert again.name == first.name
    held = [{name: opened.read(name) for name in opened.namelist()} for opened in map(zipfile.ZipFile, (first, again))]
    records = [files.pop(next(name for name in files if name.endswith("/RECORD"))) for files in held]
    assert held[0] == held[1]
    assert sorted(records[0].splitlines()) == sorted(records[1].splitlines())


def test_a_platform_brings_those_of_each_older_glibc():
    tags = platforms_of("manylinux_2_17_aarch64")
    assert tags[:2] == ["manylinux_2_17_aarch64", "manylinux2014_aarch64"]
    assert "manylinux_2_5_aarch64" in tags
    assert "manylinux_2_18_aarch64" not in tags


@pytest.mark.parametrize(("python", "where"), [("3", None), ("3.11.7", None), (None, "linux_x86_64"), (None, "win32")])
def test_a_python_or_platform_that_is_none_is_refused_with_an_example(tmp_path, python, where):
    with pytest.raises(RunError, match="such as"):
        make_bundle(tmp_path / "b.pyz", python=python, where=where)


def test_conditions_on_the_python_version_are_read_for_the_nodes_python(tmp_path):
    """pip reads them for the Python that it runs in."""
    stated = ["older; python_version < '3.12'", "newer>=2; python_version >= '3.12'", "x", "more; extra == 'more'"]
    text = "\n".join(["Metadata-Version: 2.1", "Name: x", "Version: 1", *(f"Requires-Dist: {one}" for one in stated)])
    with zipfile.ZipFile(tmp_path / "x-1-py3-none-any.whl", "w") as wheel:
        wheel.writestr("x-1.dist-info/METADATA", text)
    assert list(unmet(tmp_path, "3.11")) == ["older"]
    assert list(unmet(tmp_path, "3.13")) == ["newer>=2"]
