"""Under torchrun, or with the variables that torch.distributed reads: one process a node, or one a GPU.

MASTER_ADDR is the node of rank 0, the head. MASTER_PORT is torch's own and not used here.
"""

from collections.abc import Mapping

from .place import HEAD, Place, nodes_of, own_name, whole

_RUN = "TORCHELASTIC_RUN_ID"
_PLAIN = ("RANK", "WORLD_SIZE", "MASTER_ADDR")


def under_torchrun(env: Mapping[str, str]) -> Place | None:
    """The place that torchrun gives, or None. Raises RunError for variables that contradict each other."""
    if _RUN not in env:
        return None
    return _place(env, "torchrun", f"torchrun's variables ({_RUN}={env[_RUN]} ")


def with_torch_variables(env: Mapping[str, str]) -> Place | None:
    """The place of one of several processes with torch's variables but without torchrun, as Kubeflow's PyTorchJob and
    job scripts set them; else None. Raises RunError for variables that contradict each other."""
    if _RUN in env or not all(name in env for name in _PLAIN) or whole(env, "WORLD_SIZE") < 2:
        return None
    return _place(env, "torch", "the variables of torch.distributed (")


def _place(env: Mapping[str, str], launcher: str, why: str) -> Place:
    rank, processes = whole(env, "RANK"), whole(env, "WORLD_SIZE")
    local_rank, local = whole(env, "LOCAL_RANK", 0), whole(env, "LOCAL_WORLD_SIZE", 1)
    head = env.get(HEAD) or env.get("MASTER_ADDR", "")
    return Place(
        launcher=launcher,
        why=f"{why}RANK={rank} WORLD_SIZE={processes} LOCAL_WORLD_SIZE={local} MASTER_ADDR={head})",
        node=own_name(env),
        number=whole(env, "GROUP_RANK", rank // local if local else 0),
        count=nodes_of(rank, processes, local_rank, local, "RANK, WORLD_SIZE, LOCAL_RANK and LOCAL_WORLD_SIZE"),
        rank=rank,
        local_rank=local_rank,
        processes=processes,
        heads=(head,) if head else (),
    )
