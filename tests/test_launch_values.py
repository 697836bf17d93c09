"""What `launch` prints can be submitted as it stands: each value is looked at, and the words after -- are parsed."""

import json

import pytest
import yaml
from click.testing import CliRunner

from hwlottery.cli import cli

SLURM = ("launch", "slurm", "--nodes", "2")
PODS = ("launch", "kubernetes", "--nodes", "2", "--gpus-per-node", "8")
IMAGE = ("--image", "registry.example:5000/team/image:1.0")
DIGEST = "sha256:" + "0" * 64


def launch(*given):
    done = CliRunner().invoke(cli, [*map(str, given)], catch_exceptions=False)
    return done.exit_code, done.stdout, done.stderr


def refused(*given):
    """What is said of what is refused: one line, and no script."""
    code, out, said = launch(*given)
    assert (code, out) == (2, ""), said
    assert said.count("\n") == 1 or "\nError: " in said, said
    return said


@pytest.mark.parametrize(
    "time", ["90", "0", "4:00", "04:00:00", "1-12", "1-12:30", "1-12:30:15", "UNLIMITED", "infinite"]
)
def test_every_form_of_slurms_time_is_taken(time):
    code, out, _ = launch(*SLURM, "--time", time)
    assert code == 0
    assert f"#SBATCH --time={time}\n" in out


@pytest.mark.parametrize(
    "time", ["abc", "", "4\n#SBATCH --uid=0", "4h", "1-", "1:2:3:4", "-1", "9" * 30, "4 ", "\uff14"]
)
def test_what_is_no_time_of_slurms_is_refused(time):
    assert "--time" in refused(*SLURM, "--time", time)


@pytest.mark.parametrize("name", ["gpu", "gpu,spot", "h100.80g_x-1", "_debug"])
def test_names_of_partitions_are_taken(name):
    assert f"#SBATCH --partition={name}\n" in launch(*SLURM, "--partition", name)[1]


@pytest.mark.parametrize(
    "name", ["a\n#SBATCH --wrap=x\ntouch /tmp/pwn", "", "a b", "a,", "-x", "a=b", "a\r", "$(x)", "a" * 200]
)
def test_what_is_no_name_of_a_partition_is_refused(name):
    assert "--partition" in refused(*SLURM, "--partition", name)


@pytest.mark.parametrize(
    "python", ["python3", "/opt/py/bin/python3 -u", "~/venv/bin/python", "$VENV/bin/python", "'/a b/python'"]
)
def test_a_command_that_starts_python_is_taken_with_the_nodes_own_variables(python):
    assert (
        f"srun --ntasks-per-node=1 --cpu-bind=none {python} -m hwlottery run" in launch(*SLURM, "--python", python)[1]
    )


@pytest.mark.parametrize(
    "python", ["", "x; touch y", "x\ntouch y", "$(touch y)", "`touch y`", "x | y", "x > y", "'x", "x & y"]
)
def test_more_than_a_command_is_refused(python):
    assert "--python" in refused(*SLURM, "--python", python)


BOTH = [(SLURM, ()), (PODS, IMAGE)]


@pytest.mark.parametrize(("command", "more"), BOTH)
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--profile", "nosuch"], "unknown profile 'nosuch'"),
        (["--policy", "nosuch"], "nosuch"),
        (["--hosts", "a,b"], "--hosts is for nodes reached by ssh"),
        (["--ssh", "-F x"], "--ssh is for nodes reached by ssh"),
        (["--bundle", "auto"], "--bundle is for nodes reached by ssh"),
        (["--nosuch"], "No such option"),
        (["--join-within", "nan"], "not a number"),
        (["--join-within"], "requires an argument"),
        (["--only", "nosuch"], "unknown probe 'nosuch'"),
        (["--price", "-1"], "--price"),
        (["--tier", "nosuch"], "--tier"),
        (["extra"], "unexpected extra argument"),
        (["--partners", "n1"], "--partners says something of a join only"),
        (["--resume", "there/run", "--seed", "1"], "--seed cannot be given with --resume"),
        (["--gpus-per-node", "257"], "--gpus-per-node"),
    ],
)
def test_words_that_the_run_would_refuse_are_refused_before_they_are_queued(command, more, words, said):
    assert said in refused(*command, *more, "--", *words)


def test_the_number_of_gpus_is_said_once():
    assert "otherwise" in refused(*SLURM, "--gpus-per-node", "8", "--", "--gpus-per-node", "4")
    assert launch(*SLURM, "--", "--gpus-per-node", "0")[0] == 0


def test_a_file_that_is_here_is_read_and_one_that_is_not_is_noted(tmp_path):
    (tmp_path / "mine.yaml").write_text("name: [")
    assert "mine.yaml" in refused(*SLURM, "--", "--profile", tmp_path / "mine.yaml")
    code, out, said = launch(*SLURM, "--", "--profile", "/nodes/mine.yaml", "--join", "/nodes/run")
    assert (code, "/nodes/mine.yaml is not here" in said.replace("'", "")) == (0, True)
    assert "--profile /nodes/mine.yaml" in out


def test_a_recheck_is_parsed_as_one():
    assert launch(*SLURM, "--", "recheck", "--baseline", "/shared/run")[0] == 0
    assert "--baseline" in refused(*SLURM, "--", "recheck")
    assert "--resume" in refused(*SLURM, "--", "recheck", "--baseline", "x", "--resume", "y")
    assert "after --" in refused(*PODS, *IMAGE, "--", "recheck", "--baseline", "/shared/run")


def test_a_resumed_run_is_told_nothing_that_it_would_refuse():
    assert launch(*SLURM, "--gpus-per-node", "8", "--", "--resume", "/shared/run")[1].endswith(
        "run --resume /shared/run\n"
    )
    _, out, _ = launch(*PODS, *IMAGE, "--volume", "c:/shared", "--", "--resume", "/shared/run")
    assert container_of(out)["args"] == ["-m", "hwlottery", "run", "--join-within", "900", "--resume", "/shared/run"]


def container_of(out):
    (job,) = [one for one in yaml.safe_load_all(out) if one["kind"] == "Job"]
    (container,) = job["spec"]["template"]["spec"]["containers"]
    return container


@pytest.mark.parametrize("out", [["--out", "/results/run"], ["--out=/results/run"]])
def test_where_the_results_lie_is_known_however_the_option_is_written(out):
    container = container_of(launch(*PODS, *IMAGE, "--volume", "c:/results/", "--", *out)[1])
    assert container["command"] == ["python3"]
    assert "/tmp/hwlottery" not in container["args"]


def test_a_run_directory_is_a_word_in_the_script_of_the_pod():
    container = container_of(launch(*PODS, *IMAGE, "--", "--out", "/x/$(touch pwn)")[1])
    assert '$POD_NAME:"\'/x/$(touch pwn)\'" hwlottery-run"' in container["command"][2]
    climbing = container_of(launch(*PODS, *IMAGE, "--volume", "c:/r", "--", "--out", "/r/../x")[1])
    assert climbing["command"][0] == "/bin/sh"


@pytest.mark.parametrize(
    "image",
    [
        "x",
        "team/image",
        "localhost:5000/x",
        "registry.example/a/b__c.d:v1.0",
        f"x@{DIGEST}",
        f"r.io/x:1@{DIGEST}",
        "[fd00::1]:5000/x",
    ],
)
def test_references_of_images_are_taken(image):
    assert container_of(launch(*PODS, "--image", image)[1])["image"] == image


@pytest.mark.parametrize(
    "image", ["", "a: b\nevil: yes", "team/UPPER", "a b", "a:", "a@sha256:1", "-a", "a//b", "a:b:c", "x" * 300, "a\n"]
)
def test_what_is_no_reference_of_an_image_is_refused(image):
    assert "--image" in refused(*PODS, "--image", image)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--volume", "../x:/../etc"], "no name of a claim"),
        (["--volume", "x:/../etc"], "no .. in it"),
        (["--volume", "x:etc"], "begins with /"),
        (["--volume", "x:/"], "no path"),
        (["--volume", "x:/a:b"], "no path"),
        (["--volume", "x:/scratch"], "there already"),
        (["--volume", "x:/a", "--volume", "y:/a/"], "there already"),
        (["--volume", "X:/a"], "no name of a claim"),
        (["--rdma", "rdma/hca=999999999999999"], "no number of devices"),
        (["--rdma", "rdma/hca=0"], "no number of devices"),
        (["--rdma", "rdma/hca=\uff11"], "no number of devices"),
        (["--rdma", "hca=1"], "no name of a resource"),
        (["--rdma", "rdma/h ca=1"], "no name of a resource"),
        (["--rdma", "kubernetes.io/x=1"], "Kubernetes' own"),
        (["--rdma", "a/b=1", "--rdma", "a/b=2"], "there already"),
        (["--rdma", "nvidia.com/gpu=1"], "there already"),
        (["--gpu-resource", "nvidia.com/"], "no name of a resource"),
        (["--gpu-resource", "gpu"], "no name of a resource"),
        (["--name", "a" * 51], "--name"),
        (["--name", "1a"], "--name"),
        (["--name", "a\n"], "--name"),
        (["--namespace", "a" * 64], "--namespace"),
        (["--namespace", "A"], "--namespace"),
        (["--python", ""], "--python"),
        (["--python", "python3 -u"], "--python"),
        (["--hours", "inf"], "--hours"),
        (["--hours", "nan"], "--hours"),
        (["--hours", "1e308"], "--hours"),
    ],
)
def test_what_kubernetes_would_not_run_is_refused(given, said):
    assert said in refused(*PODS, *IMAGE, *given)


def test_what_kubernetes_takes_is_taken():
    given = ["--namespace", "2024-acceptance", "--volume", "data.set-1:/data", "--rdma", "rdma/hca_shared=1000"]
    code, out, said = launch(*PODS, *IMAGE, *given, "--gpu-resource", "nvidia.com/mig-1g.5gb")
    assert code == 0, said
    assert container_of(out)["resources"]["limits"] == {"nvidia.com/mig-1g.5gb": "8", "rdma/hca_shared": "1000"}
    assert json.loads(next(yaml.safe_load_all(out))["stringData"]["identity"])["certificate"]
