"""launch: the script or the manifests that start a run inside a scheduler."""

import sys
from pathlib import Path
from typing import Any

import click

from .answers import one_line_errors
from .arguments import ACCELERATORS, FILE, NODES, SECONDS, Number


@click.group()
def launch() -> None:
    """Print what starts a run inside a scheduler: a script for sbatch, or manifests for kubectl."""


_NODES = click.option("--nodes", type=NODES, required=True, metavar="N", help="How many to ask for.")
_ARGUMENTS = click.argument("arguments", nargs=-1, metavar="[-- OPTIONS OF RUN]")


@launch.command()
@_NODES
@click.option("--gpus-per-node", type=ACCELERATORS, default=None, metavar="N", help="GPUs to ask for on each.")
@click.option("--time", default="04:00:00", show_default=True, metavar="LIMIT", help="The job's time limit.")
@click.option("--partition", default=None, metavar="NAME", help="Slurm's partition. [default: Slurm's own default]")
@click.option(
    "--bundle",
    type=FILE,
    default=None,
    help="Bring hwlottery to nodes that have torch alone: a file made with `hwlottery bundle --head`.",
)
@click.option(
    "--python",
    default=None,
    metavar="COMMAND",
    help="What starts Python on the nodes. [default: the path of the one here; python3 with --bundle]",
)
@_ARGUMENTS
def slurm(
    *,
    nodes: int,
    gpus_per_node: int | None,
    time: str,
    partition: str | None,
    bundle: Path | None,
    python: str | None,
    arguments: tuple[str, ...],
) -> None:
    """Print the job script that starts a run inside Slurm, for sbatch; with `-- recheck --baseline RUN` a recheck."""
    with one_line_errors():
        from ..cluster.bundle import load_for_head
        from ..cluster.job_script import slurm_script
        from .words_of_run import words_of

        words = words_of(arguments, gpus_per_node=gpus_per_node, may_recheck=True)
        script = slurm_script(
            nodes=nodes,
            gpus_per_node=gpus_per_node,
            time=time,
            partition=partition,
            run=words.words,
            resumes="resume" in words.told,
            bundle=load_for_head(bundle.absolute()).path if bundle else None,
            python=python,
        )
    click.echo(script, nl=False)


@launch.command()
@_NODES
@click.option("--gpus-per-node", type=ACCELERATORS, required=True, metavar="N", help="GPUs to ask for on each.")
@click.option("--image", required=True, help="A container image with hwlottery and torch.")
@click.option("--name", default="hwlottery", show_default=True, help="Name of job, service and secret.")
@click.option("--namespace", default=None, help="The namespace. [default: kubectl's]")
@click.option("--gpu-resource", default="nvidia.com/gpu", show_default=True, help="What GPUs are called there.")
@click.option("--rdma", multiple=True, metavar="RESOURCE=COUNT", help="RDMA devices of each pod, as rdma/hca=1.")
@click.option(
    "--volume", "volumes", multiple=True, metavar="CLAIM:PATH", help="Mount a claim: for --scratch and --out."
)
@click.option("--python", default="python3", show_default=True, help="Python in the image.")
@click.option("--hours", type=Number(min=0.1, max=8784), default=4.0, show_default=True, help="The job's time limit.")
@click.option(
    "--stay",
    type=SECONDS,
    default=1800,
    show_default=True,
    metavar="SECONDS",
    help="How long the head's pod waits for kubectl cp, where --out is on no volume.",
)
@click.option(
    "--join-within",
    type=SECONDS,
    default=900,
    show_default=True,
    metavar="SECONDS",
    help="How long pods may take to come: a node may have to fetch the image.",
)
@click.option("--jobset", is_flag=True, help="A JobSet (jobset.x-k8s.io) in place of a Job and its Service.")
@_ARGUMENTS
def kubernetes(
    *,
    rdma: tuple[str, ...],
    volumes: tuple[str, ...],
    hours: float,
    stay: int,
    join_within: int,
    arguments: tuple[str, ...],
    **wishes: Any,
) -> None:
    """Print the manifests that start a run in Kubernetes, a pod a node, for kubectl create -f -.

    They hold a Secret with the run's private key: pipe them, and print them anew for each run.
    """
    with one_line_errors():
        from ..cluster.identity import new_identity
        from ..cluster.manifest import asked_for, manifests
        from .words_of_run import words_of

        words = words_of(arguments, gpus_per_node=wishes["gpus_per_node"])
        asked = asked_for(
            rdma=rdma,
            volumes=volumes,
            time_s=round(hours * 3600),
            stay_s=stay,
            join_within_s=join_within,
            run=words.words,
            told=words.told,
            out=str(words.out) if words.out else None,
            **wishes,
        )
        text = manifests(asked, new_identity())
    if sys.stdout.isatty():
        click.echo("note: this holds the run's private key; pipe it to kubectl create -f -", err=True)
    click.echo(text, nl=False)
