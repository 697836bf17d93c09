"""A bundle inside a real Slurm, by the script as it is printed: on nodes that have torch alone, and their own /tmp."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from image import image_python
from lab import Lab
from lab.lab import missing_tools, wait_until
from lab.slurm import missing_slurm

from hwlottery.cluster.bundle import make_bundle
from hwlottery.evidence import read_run

PROFILES = Path(__file__).parent / "profiles"
MISSING = [*missing_tools(), *missing_slurm()]
pytestmark = [
    pytest.mark.timeout(600),
    pytest.mark.lab,
    pytest.mark.skipif(bool(MISSING), reason=f"the lab needs {', '.join(MISSING)}"),
]


@pytest.fixture(scope="module")
def lab():
    with Lab(2) as made:
        yield made


@pytest.fixture(scope="module")
def slurm(lab):
    with lab.slurm() as env:
        yield {name: value for name, value in env.items() if name != "PYTHONPATH"}


@pytest.fixture(scope="module")
def bundle(lab):
    return make_bundle(lab.folder / "bundle.pyz", head=True).path


@pytest.fixture(scope="module")
def image(lab):
    return image_python(lab.folder / "image")


def script_for(image, bundle, out, profile, *more):
    """The script as `hwlottery launch slurm` prints it."""
    given = ["--profile", PROFILES / f"{profile}.yaml", "--policy", "prolog", "--scratch", "/tmp", "--out", out, *more]
    words = ["launch", "slurm", "--nodes", "2", "--time", "15", "--bundle", bundle, "--python", image, "--", *given]
    return subprocess.run(
        [sys.executable, "-m", "hwlottery", *map(str, words)], capture_output=True, text=True, check=True
    ).stdout


def submit(slurm, script, output, *more):
    words = ["sbatch", "--parsable", f"--output={output}", "--chdir=/tmp", *more]
    done = subprocess.run(words, input=script, text=True, env=slurm, capture_output=True, timeout=500, check=False)
    return done.stdout.strip()


def left_on(lab):
    """Our processes and files on each host."""
    return {
        name: [*host.processes("hwlottery|multiprocessing"), *host.run("ls", "/tmp").split("hwlottery")[1:]]
        for name, host in lab.hosts.items()
    }


def test_the_printed_script_brings_hwlottery_to_every_node_and_removes_it(lab, slurm, bundle, image):
    assert (
        lab.hosts["node1"].run(image, "-c", "import importlib.util as u; print(u.find_spec('hwlottery'))") == "None\n"
    )
    out, output = lab.folder / "run", lab.folder / "output"
    submit(
        slurm, script_for(image, bundle, out, "tiny", "--only", "all_reduce", "--join-within", "200"), output, "--wait"
    )
    run = read_run(out)
    assert run.problems == [], output.read_text()
    assert {event.subject for event in run.events if event.kind == "node_joined"} == {"node1", "node2"}
    measured = {m.subject.partition("/")[0] for m in run.measurements if m.metric == "all_reduce.busbw"}
    assert measured == {"node1", "node2"}
    assert json.loads((out / "verdict.json").read_text())["exclude"] == []
    assert (out / "report.html").stat().st_size > 10_000
    wait_until(lambda: not any(left_on(lab).values()), 20, f"nothing is left on the nodes: {left_on(lab)}")


def test_a_cancelled_job_leaves_nothing_on_its_nodes(lab, slurm, bundle, image):
    out, output = lab.folder / "cancelled", lab.folder / "output-cancelled"
    job = submit(slurm, script_for(image, bundle, out, "hosts", "--join-within", "200"), output)
    plan = out / "plan.jsonl"
    wait_until(lambda: plan.exists() and "matmul" in plan.read_text(), 250, "the run measures")
    assert all(left_on(lab).values())
    subprocess.run(["scancel", job], env=slurm, check=True)
    wait_until(lambda: not any(left_on(lab).values()), 60, f"nothing is left on the nodes: {left_on(lab)}")
    time.sleep(0.5)
    assert "interrupted" in (out / "events.jsonl").read_text()


def test_a_bundle_without_the_heads_part_is_refused_with_what_makes_one(tmp_path):
    made = make_bundle(tmp_path / "bundle.pyz")
    words = ["launch", "slurm", "--nodes", "2", "--bundle", made.path]
    done = subprocess.run(
        [sys.executable, "-m", "hwlottery", *map(str, words)],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ,
    )
    assert done.returncode == 2
    assert "bundle --head" in done.stderr
    assert done.stdout == ""
