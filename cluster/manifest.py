"""The Kubernetes manifests that start a run: an Indexed Job with a pod a node, the Service by which the pods find the
head, and a Secret with the run's TLS identity."""

import posixpath
import shlex
from collections.abc import Sequence
from typing import Any

import msgspec
import yaml
from msgspec import Struct

from ..evidence import RunError
from .identity import IDENTITY_FILE, Identity
from .kubernetes import INDEX
from .kubernetes_names import check_names, check_resource, check_volume, refuse_doubled, shown
from .place import HEAD, NODE, NODES

_IDENTITY_AT = "/run/hwlottery"
_SCRATCH = "/scratch"
_OUT = "/tmp/hwlottery"  # noqa: S108  # in the head's pod, which has its /tmp to itself
_SHM = "/dev/shm"  # noqa: S108  # NCCL's own place
_LABEL = "app.kubernetes.io/instance"
_HEADER = """\
# For kubectl create -f -. It holds the private key of this run: do not keep it, and print it anew for the next run.
# Kubernetes 1.29 or newer. What the head says, and where the report lies:
#   kubectl logs -f -l {label}={name},batch.kubernetes.io/job-completion-index=0
"""
# The head's pod stays for a while, or its files would go with it; it ends earlier when it is deleted.
_STAY = """\
"$@" & run=$!
trap 'kill -TERM $run' TERM
while kill -0 $run 2>/dev/null; do wait $run; code=$?; done
[ "${index}" = 0 ] || exit $code
echo "this pod stays for {stay_s} s: kubectl cp {namespace}$POD_NAME:"{out}" hwlottery-run"
trap 'exit $code' TERM
sleep {stay_s} & wait $!
exit $code
"""


class Wishes(Struct, frozen=True, kw_only=True):
    """What a cluster is asked for. `rdma` and `volumes` are pairs: resource and count, claim and where it is mounted.

    `time_s` ends the job; `stay_s` is how long the head's pod stays where no volume takes the results. `run` are the
    words of the run, of which `told` are the options that they state and `out` the run directory.
    """

    name: str
    namespace: str | None
    image: str
    nodes: int
    gpus_per_node: int
    gpu_resource: str = "nvidia.com/gpu"
    rdma: tuple[tuple[str, int], ...] = ()
    volumes: tuple[tuple[str, str], ...] = ()
    python: str = "python3"
    time_s: int
    stay_s: int
    join_within_s: int
    jobset: bool = False
    run: tuple[str, ...] = ()
    told: frozenset[str] = frozenset()
    out: str | None = None


def manifests(wishes: Wishes, identity: Identity) -> str:
    """The documents as YAML, with a comment that says what to do with them."""
    documents = [_secret(wishes, identity), *([] if wishes.jobset else [_service(wishes)]), _job_or_set(wishes)]
    text = yaml.dump_all(documents, Dumper=_Readable, sort_keys=False, width=1000)
    return _HEADER.format(label=_LABEL, name=wishes.name) + text


class _Readable(yaml.SafeDumper):
    """Scripts as blocks, and nothing by reference."""

    def ignore_aliases(self, data: Any) -> bool:
        """Every value is written where it stands."""
        return True


def _as_block(dumper: yaml.SafeDumper, text: str) -> Any:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Readable.add_representer(str, _as_block)


def _metadata(wishes: Wishes) -> dict[str, Any]:
    where = {"namespace": wishes.namespace} if wishes.namespace else {}
    return {"name": wishes.name, **where, "labels": {"app.kubernetes.io/name": "hwlottery", _LABEL: wishes.name}}


def _secret(wishes: Wishes, identity: Identity) -> dict[str, Any]:
    content = {"identity": msgspec.json.encode(identity).decode()}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": _metadata(wishes),
        "type": "Opaque",
        "stringData": content,
    }


def _service(wishes: Wishes) -> dict[str, Any]:
    """Headless: it gives the pods names. They ask for the head before it is ready, for it waits for them."""
    spec = {"clusterIP": "None", "publishNotReadyAddresses": True, "selector": {_LABEL: wishes.name}}
    return {"apiVersion": "v1", "kind": "Service", "metadata": _metadata(wishes), "spec": spec}


def _job_or_set(wishes: Wishes) -> dict[str, Any]:
    if not wishes.jobset:
        return {"apiVersion": "batch/v1", "kind": "Job", "metadata": _metadata(wishes), "spec": _job(wishes)}
    spec = {
        "network": {"enableDNSHostnames": True, "subdomain": wishes.name, "publishNotReadyAddresses": True},
        "failurePolicy": {"maxRestarts": 0},
        "replicatedJobs": [{"name": "nodes", "replicas": 1, "template": {"spec": _job(wishes)}}],
    }
    return {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": _metadata(wishes), "spec": spec}


def _job(wishes: Wishes) -> dict[str, Any]:
    """A pod a node, none of which is started again: one that fails, a node's, must not end the others."""
    return {
        "completionMode": "Indexed",
        "completions": wishes.nodes,
        "parallelism": wishes.nodes,
        "backoffLimitPerIndex": 0,
        "podReplacementPolicy": "Failed",
        "activeDeadlineSeconds": wishes.time_s,
        "template": {"metadata": {"labels": _metadata(wishes)["labels"]}, "spec": _pod(wishes)},
    }


def _pod(wishes: Wishes) -> dict[str, Any]:
    alone = {"labelSelector": {"matchLabels": {_LABEL: wishes.name}}, "topologyKey": "kubernetes.io/hostname"}
    claims = [
        {"name": f"volume-{number}", "persistentVolumeClaim": {"claimName": claim}}
        for number, (claim, _) in enumerate(wishes.volumes)
    ]
    return {
        **({} if wishes.jobset else {"subdomain": wishes.name}),
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [alone]}},
        "tolerations": [{"key": wishes.gpu_resource, "operator": "Exists", "effect": "NoSchedule"}],
        "containers": [_container(wishes)],
        "volumes": [
            {"name": "identity", "secret": {"secretName": wishes.name, "defaultMode": 0o400}},
            {"name": "shm", "emptyDir": {"medium": "Memory"}},
            {"name": "scratch", "emptyDir": {}},
            *claims,
        ],
    }


def _container(wishes: Wishes) -> dict[str, Any]:
    devices = {wishes.gpu_resource: wishes.gpus_per_node} if wishes.gpus_per_node else {}
    devices |= dict(wishes.rdma)
    counts = {name: str(count) for name, count in devices.items()}
    # RDMA pins memory beyond what a container's memlock allows.
    security = {"securityContext": {"capabilities": {"add": ["IPC_LOCK"]}}} if wishes.rdma else {}
    command, arguments = _command(wishes)
    return {
        "name": "hwlottery",
        "image": wishes.image,
        "command": command,
        "args": arguments,
        "env": _variables(wishes),
        "resources": {"requests": counts, "limits": counts},
        **security,
        "volumeMounts": [
            {"name": "identity", "mountPath": _IDENTITY_AT, "readOnly": True},
            {"name": "shm", "mountPath": _SHM},
            {"name": "scratch", "mountPath": _SCRATCH},
            *({"name": f"volume-{n}", "mountPath": path} for n, (_, path) in enumerate(wishes.volumes)),
        ],
    }


def _variables(wishes: Wishes) -> list[dict[str, Any]]:
    head = f"{wishes.name}-nodes-0-0.{wishes.name}" if wishes.jobset else f"{wishes.name}-0.{wishes.name}"
    fixed = {NODES: str(wishes.nodes), HEAD: head, IDENTITY_FILE: f"{_IDENTITY_AT}/identity"}
    asked = {NODE: "spec.nodeName", "POD_NAME": "metadata.name"}
    return [
        *({"name": name, "value": value} for name, value in fixed.items()),
        *({"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}} for name, path in asked.items()),
    ]


def _command(wishes: Wishes) -> tuple[list[str], list[str]]:
    """The container's command and its arguments: the run, and what waits after it where no volume keeps the results."""
    out, kept = _place_of_results(wishes)
    run = [wishes.python, "-m", "hwlottery", "run", *_stated(wishes, out), *wishes.run]
    if kept:
        return run[:1], run[1:]
    namespace = f"-n {wishes.namespace} " if wishes.namespace else ""
    script = _STAY
    for name, value in {
        "index": INDEX,
        "stay_s": wishes.stay_s,
        "namespace": namespace,
        "out": shlex.quote(out),
    }.items():
        script = script.replace("{" + name + "}", str(value))
    return ["/bin/sh", "-c", script, "hwlottery"], run


def _stated(wishes: Wishes, out: str) -> list[str]:
    """What the run is told beside its own words. A resumed run takes almost all from what it goes on with, a join its
    scratch."""
    values = {"gpus_per_node": str(wishes.gpus_per_node), "join_within": str(wishes.join_within_s)}
    values |= {"out": out, "scratch": _SCRATCH}
    left_out = {*wishes.told, *({"gpus_per_node", "out", "scratch"} if "resume" in wishes.told else ())}
    left_out |= {"scratch"} if "join" in wishes.told else set()
    given = ((f"--{name.replace('_', '-')}", value) for name, value in values.items() if name not in left_out)
    return [word for pair in given for word in pair]


def _place_of_results(wishes: Wishes) -> tuple[str, bool]:
    """Where the run directory is made in the head's pod, and whether a volume keeps it."""
    if wishes.out is None:
        return _OUT, False
    place = posixpath.normpath(wishes.out)
    return wishes.out, any(place.startswith(f"{posixpath.normpath(path)}/") for _, path in wishes.volumes)


def asked_for(*, rdma: Sequence[str], volumes: Sequence[str], **wishes: Any) -> Wishes:
    """Wishes from the texts of options: RESOURCE=COUNT and CLAIM:PATH. Raises RunError for one that is neither, and for
    what Kubernetes would refuse."""
    check_names(*(wishes[named] for named in ("name", "namespace", "image", "python")))
    check_resource("--gpu-resource", wishes["gpu_resource"], "1")
    devices = _pairs(rdma, "=", "--rdma")
    counts = tuple((name, check_resource("--rdma", name, count)) for name, count in devices)
    refuse_doubled("--rdma", (name for name, _ in counts), (wishes["gpu_resource"],))
    mounted = _pairs(volumes, ":", "--volume")
    for claim, path in mounted:
        check_volume(claim, path)
    places = (posixpath.normpath(path) for _, path in mounted)
    refuse_doubled("--volume", places, (_IDENTITY_AT, _SHM, _SCRATCH))
    return Wishes(rdma=counts, volumes=mounted, **wishes)


def _pairs(texts: Sequence[str], between: str, option: str) -> tuple[tuple[str, str], ...]:
    split = [text.partition(between) for text in texts]
    for text, (left, _, right) in zip(texts, split, strict=True):
        if not left or not right:
            raise RunError(f"{option} {shown(text)}: give two parts with {between!r} between them")
    return tuple((left, right) for left, _, right in split)
