"""In a pod of an Indexed Job: the pod of index 0 leads. The manifest says how many pods there are, and their head."""

from collections.abc import Mapping

from ..evidence import RunError
from .place import HEAD, NODES, Place, own_name, whole

INDEX = "JOB_COMPLETION_INDEX"


def in_indexed_job(env: Mapping[str, str]) -> Place | None:
    """The place that an Indexed Job gives, or None. Raises RunError where the manifest does not say enough."""
    if INDEX not in env:
        return None
    missing = [name for name in (NODES, HEAD) if not env.get(name)]
    if missing:
        raise RunError(
            f"{INDEX} says that this is a pod of an Indexed Job, and {' and '.join(missing)} is not set: "
            "hwlottery launch kubernetes prints a manifest that says it"
        )
    index, count = whole(env, INDEX), whole(env, NODES)
    if index >= count:
        raise RunError(f"{INDEX}={index} and {NODES}={count} contradict each other")
    return Place(
        launcher="kubernetes",
        why=f"a pod of an Indexed Job ({INDEX}={index} {NODES}={count} {HEAD}={env[HEAD]})",
        node=own_name(env),
        number=index,
        count=count,
        rank=index,
        local_rank=0,
        processes=count,
        heads=(env[HEAD],),
    )
