"""A recheck: the settings of an earlier run again, held against it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..cluster.launchers import place_of
from ..evidence import Run, RunError, RunHeader
from ..evidence.writing import now
from ..probes.profiles import Profile, load_profile, profile_from_text
from .joining import LOCAL, SSH
from .promise import refuse_odd_names_of, scratch_of

# Profiles that measure the same shapes and sizes: of any of them an hour of `recheck` is comparable.
COMPARABLE = ("acceptance", "quick", "recheck")
SHORT = "recheck"


def check_baseline(baseline: Run) -> None:
    """Raises RunError for a run that nothing can be held against."""
    if baseline.header.simulated:
        raise RunError(f"{baseline.path} is simulated: nothing measured can be held against it")
    refuse_odd_names_of(baseline.header, str(baseline.path))
    if baseline.problems:
        raise RunError(f"{baseline.path} is not whole ({baseline.problems[0]}): hwlottery verify says more")


def profile_of(given: str | None, baseline: RunHeader) -> Profile:
    """The profile given, else an hour of the earlier run's shapes where there is one, else the earlier run's own."""
    if given is not None:
        return load_profile(given)
    if baseline.profile.name in COMPARABLE:
        return load_profile(SHORT)
    return profile_from_text(baseline.profile.text, "the baseline's run.json")


def as_before(baseline: RunHeader, wishes: Mapping[str, Any], stated: set[str]) -> dict[str, Any]:
    """The options of the run to make: what was not given is as in the earlier run. Nodes that were reached by ssh are
    reached so again, unless a launcher starts this."""
    chosen = {**wishes, **{name: value for name, value in _settings(baseline).items() if name not in stated}}
    if baseline.launcher.name == SSH and "hosts" not in stated and place_of() is None:
        chosen["hosts"] = ",".join(node.node for node in baseline.promised)
    if baseline.launcher.name != LOCAL and "gpus_per_node" not in stated:
        chosen["gpus_per_node"] = accelerators_of(baseline)
    chosen["out"] = chosen["out"] or Path("runs") / f"recheck-{now():%Y%m%d-%H%M%S}"
    return chosen


def _settings(header: RunHeader) -> dict[str, Any]:
    """Whose cluster it is, what it costs, where it writes."""
    return {
        "provider": header.provider,
        "cluster": header.cluster,
        "price": header.price_per_gpu_hour,
        "tier": header.declared_tier,
        "scratch": scratch_of(header),
        "seed": header.seed,
        "run_flops": header.run_flops,
        "keep_checkpoint": Path(header.keep.directory) if header.keep else None,
        "only": header.only,
    }


def accelerators_of(header: RunHeader) -> int | None:
    """How many each node had; None where they differ."""
    each = {(node.device, len(node.ranks)) for node in header.promised}
    if len(each) != 1:
        return None
    device, ranks = each.pop()
    return ranks if device == "cuda" else 0
