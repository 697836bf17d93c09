"""Manifests for Kubernetes: what the API's own schema says of them, and a run by their very words in a lab."""

import json
import os
import subprocess
import sys
from pathlib import Path

import kubernetes_validate
import msgspec
import pytest
import yaml
from kubeflow_trainer_api.models import JobsetV1alpha2JobSet
from lab import Lab
from lab.lab import ROOT, missing_tools

from hwlottery.cluster.identity import Identity
from hwlottery.evidence import read_run

VERSIONS = ("1.29", kubernetes_validate.latest_version())
PROFILE = Path(__file__).parent / "profiles" / "tiny.yaml"
LARGE = ("--rdma", "rdma/hca=8", "--volume", "results:/results", "--namespace", "acceptance", "--name", "first-run")


def printed(*more, nodes=3, gpus=8, run=()):
    """What `hwlottery launch kubernetes` prints, by the kinds of its documents."""
    given = ["--nodes", nodes, "--gpus-per-node", gpus, "--image", "example/image:1", *more]
    done = launch(*given, "--", *run)
    assert done.returncode == 0, done.stderr
    return {document["kind"]: document for document in yaml.safe_load_all(done.stdout)}


def launch(*given):
    words = ["-m", "hwlottery", "launch", "kubernetes", *map(str, given)]
    env = {**os.environ, "PYTHONPATH": str(ROOT / ".src")}
    return subprocess.run([sys.executable, *words], capture_output=True, text=True, env=env, check=False)


def pod_of(documents):
    return documents["Job"]["spec"]["template"]["spec"]


@pytest.mark.parametrize("more", [(), LARGE])
def test_every_document_passes_the_schemas_of_old_and_new_kubernetes(more):
    documents = printed(*more)
    assert sorted(documents) == ["Job", "Secret", "Service"]
    for document in documents.values():
        for version in VERSIONS:
            kubernetes_validate.validate(document, version, strict=True)


def test_that_validation_refuses_what_is_wrong():
    job = printed()["Job"]
    for wrong in ({"completions": "three"}, {"complets": 3}):
        broken = {**job, "spec": {**job["spec"], **wrong}}
        with pytest.raises(kubernetes_validate.ValidationError):
            kubernetes_validate.validate(broken, VERSIONS[0], strict=True)


def test_a_jobset_has_only_fields_that_jobset_knows_and_a_job_that_kubernetes_accepts():
    documents = printed("--jobset", *LARGE)
    assert sorted(documents) == ["JobSet", "Secret"]
    jobset = documents["JobSet"]
    assert JobsetV1alpha2JobSet.from_dict(jobset).to_dict() == jobset
    (replicated,) = jobset["spec"]["replicatedJobs"]
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "x"}, **replicated["template"]}
    for version in VERSIONS:
        kubernetes_validate.validate(job, version, strict=True)
    (container,) = job["spec"]["template"]["spec"]["containers"]
    assert {"name": "HWLOTTERY_HEAD", "value": "first-run-nodes-0-0.first-run"} in container["env"]


def test_that_jobset_comparison_sees_a_field_that_jobset_does_not_know():
    jobset = printed("--jobset")["JobSet"]
    jobset["spec"]["network"]["enableDnsHostnames"] = True
    assert JobsetV1alpha2JobSet.from_dict(jobset).to_dict() != jobset


def test_each_pod_has_a_node_to_itself_with_its_gpus_rdma_devices_and_shared_memory():
    documents = printed(*LARGE)
    spec, pod = documents["Job"]["spec"], pod_of(documents)
    (container,) = pod["containers"]
    assert (spec["completions"], spec["parallelism"], spec["completionMode"]) == (3, 3, "Indexed")
    assert container["resources"]["limits"] == {"nvidia.com/gpu": "8", "rdma/hca": "8"}
    assert container["securityContext"]["capabilities"]["add"] == ["IPC_LOCK"]
    assert {"name": "shm", "emptyDir": {"medium": "Memory"}} in pod["volumes"]
    assert {"name": "shm", "mountPath": "/dev/shm"} in container["volumeMounts"]
    (alone,) = pod["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    labels = spec["template"]["metadata"]["labels"]
    assert alone["labelSelector"]["matchLabels"].items() <= labels.items()
    assert documents["Service"]["spec"]["selector"].items() <= labels.items()
    assert pod["subdomain"] == documents["Service"]["metadata"]["name"]


def test_a_pod_that_fails_is_not_started_again_and_does_not_end_the_others():
    documents = printed()
    assert documents["Job"]["spec"]["backoffLimitPerIndex"] == 0
    assert "backoffLimit" not in documents["Job"]["spec"]
    assert pod_of(documents)["restartPolicy"] == "Never"


def test_the_identity_is_new_each_time_and_stands_in_the_secret_alone():
    first, second = printed(), printed()
    identities = [
        msgspec.json.decode(documents["Secret"]["stringData"]["identity"], type=Identity)
        for documents in (first, second)
    ]
    assert identities[0] != identities[1]
    rest = json.dumps({kind: document for kind, document in first.items() if kind != "Secret"})
    assert "PRIVATE KEY" not in rest
    (volume,) = [volume for volume in pod_of(first)["volumes"] if "secret" in volume]
    assert volume["secret"]["defaultMode"] == 0o400


def test_where_a_volume_takes_the_results_no_pod_waits_for_them_to_be_fetched():
    kept = pod_of(printed("--volume", "results:/results", run=["--out", "/results/run"]))["containers"][0]
    assert kept["command"] == ["python3"]
    assert kept["args"][:3] == ["-m", "hwlottery", "run"]
    lost = pod_of(printed("--volume", "results:/results", run=["--out", "/elsewhere/run"]))["containers"][0]
    assert "sleep 1800" in lost["command"][2]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--rdma", "rdma/hca"], "--rdma rdma/hca"),
        (["--rdma", "rdma/hca=some"], "no number of devices"),
        (["--volume", "claim"], "--volume claim"),
        (["--volume", "claim:results"], "begins with /"),
        (["--name", "First_Run"], "--name First_Run"),
    ],
)
def test_what_kubernetes_would_refuse_is_refused_before_in_one_line(given, said):
    done = launch("--nodes", 2, "--gpus-per-node", 8, "--image", "x", *given)
    assert done.returncode == 2
    (line,) = done.stderr.strip().splitlines()
    assert said in line
    assert done.stdout == ""


MOUNTED = (Path("/run/hwlottery"), Path("/scratch"))


@pytest.fixture
def lab():
    """Hosts whose filesystem has the places where the manifest mounts."""
    made_here = [place for place in MOUNTED if not place.exists()]
    for place in made_here:
        place.mkdir()
    try:
        with Lab(2) as made:
            yield made
    finally:
        for place in made_here:
            place.rmdir()


class Kubelet:
    """Starts a manifest's pods on hosts of a lab, with the manifest's own command, variables and Secret."""

    def __init__(self, lab, documents):
        self.lab, self.documents = lab, documents
        self.pod = pod_of(documents)
        (self.container,) = self.pod["containers"]
        self._names = {f"first-run-{index}.first-run": host.address for index, host in enumerate(lab.hosts.values())}

    def start(self, index, host):
        """A pod: its Secret is mounted, its names resolve, and its main process is started."""
        for mount in self.container["volumeMounts"]:
            if Path(mount["mountPath"]) in MOUNTED:
                host.run("mount", "-t", "tmpfs", "tmpfs", mount["mountPath"])
        self._put_secret(host)
        self._resolve(host)
        words = [*self.container["command"], *self.container["args"]]
        return subprocess.Popen(
            host.inside(*words), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=self._env(index, host)
        )

    def _put_secret(self, host):
        (volume,) = [volume for volume in self.pod["volumes"] if "secret" in volume]
        (mount,) = [mount for mount in self.container["volumeMounts"] if mount["name"] == volume["name"]]
        place = mount["mountPath"]
        for name, content in self.documents["Secret"]["stringData"].items():
            host.run("sh", "-c", f"cat > {place}/{name}", stdin=content)
            host.run("chmod", f"{volume['secret']['defaultMode']:o}", f"{place}/{name}")

    def _resolve(self, host):
        """The cluster's DNS: the pods' names by their headless Service."""
        file = self.lab.folder / "hosts"
        file.write_text("127.0.0.1 localhost\n" + "".join(f"{at} {name}\n" for name, at in self._names.items()))
        host.run("mount", "--bind", file, "/etc/hosts")

    def _env(self, index, host):
        fields = {"spec.nodeName": host.name, "metadata.name": f"first-run-{index}-abcde"}
        said = {
            variable["name"]: variable.get("value") or fields[variable["valueFrom"]["fieldRef"]["fieldPath"]]
            for variable in self.container["env"]
        }
        image = {"PATH": os.environ["PATH"], "HOME": "/root", "PYTHONPATH": str(ROOT / ".src")}
        return {**image, "KUBERNETES_SERVICE_HOST": "10.96.0.1", "JOB_COMPLETION_INDEX": str(index), **said}


@pytest.mark.lab
@pytest.mark.skipif(bool(missing_tools()), reason=f"the lab needs {', '.join(missing_tools())}")
def test_pods_started_with_the_manifests_own_words_make_one_run(lab):
    """The head's pod stays for a while so that its files can be fetched, and then ends with the verdict's code."""
    run = ["--profile", PROFILE, "--policy", "prolog", "--only", "all_reduce", "--out", lab.folder / "run"]
    documents = printed("--name", "first-run", "--python", sys.executable, "--stay", 2, nodes=2, gpus=0, run=run)
    kubelet = Kubelet(lab, documents)
    pods = [kubelet.start(index, host) for index, host in enumerate(lab.hosts.values())]
    try:
        (said, _), (other, _) = [pod.communicate(timeout=200) for pod in pods]
    finally:
        for pod in pods:
            pod.kill()
    found = read_run(lab.folder / "run")
    assert found.problems == [], said
    assert found.header.launcher.name == "kubernetes"
    assert [node.node for node in found.header.promised] == list(lab.hosts)
    measured = {m.subject.partition("/")[0] for m in found.measurements if m.metric == "all_reduce.busbw"}
    assert measured == set(lab.hosts)
    assert "launcher kubernetes: a pod of an Indexed Job" in said
    assert f"read the verdict in node1:{lab.folder}/run/verdict.json" in said
    assert f"kubectl cp first-run-0-abcde:{lab.folder}/run" in said
    assert pods[0].returncode == 4, "the pod's exit code is the verdict's: not all of the policy was measured"
    assert pods[1].returncode == 0, other
    assert "PRIVATE KEY" not in said + other
