"""launch: the script that starts a run inside a scheduler."""

import click


@click.command()
@click.argument("scheduler", type=click.Choice(["slurm"]))
@click.option("--nodes", type=click.IntRange(min=1), required=True, metavar="N", help="How many nodes to ask for.")
@click.option("--gpus-per-node", type=click.IntRange(min=0), default=None, metavar="N", help="GPUs to ask for on each.")
@click.option("--time", default="04:00:00", show_default=True, metavar="LIMIT", help="The job's time limit.")
@click.option("--partition", default=None, metavar="NAME", help="Slurm's partition. [default: Slurm's own default]")
@click.argument("arguments", nargs=-1, metavar="[-- OPTIONS OF RUN]")
def launch(
    *,
    scheduler: str,
    nodes: int,
    gpus_per_node: int | None,
    time: str,
    partition: str | None,
    arguments: tuple[str, ...],
) -> None:
    """Print the job script that starts a run inside a scheduler, for sbatch."""
    from ..cluster.job_script import slurm_script

    click.echo(
        slurm_script(nodes=nodes, gpus_per_node=gpus_per_node, time=time, partition=partition, run=arguments), nl=False
    )
