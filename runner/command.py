"""From the options of `hwlottery run` to a run, a resume, or the plan of one."""

import contextlib
import socket
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
from rich.console import Console
from rich.table import Table

from ..cluster.bundle import Bundle, default_name, load_bundle, make_bundle
from ..cluster.ssh import make_ssh
from ..evidence import Document, Run, RunError, Tier
from ..evidence.user_files import meant
from ..evidence.writing import now
from ..probes import PROBES
from ..probes.profiles import Profile
from .accepting import JoinRequest
from .advice import Advice
from .joining import LOCAL, LOCAL_JOIN_S, Reach, launcher_of
from .launched import counted
from .live import Live, duration
from .preview import Preview
from .run import Request, accept, plan_of, resume, start
from .session import MakeDoubts

# What a join and a resume take from the run itself: giving it again could contradict it.
_OF_THE_RUN = frozenset(
    (
        "keep_checkpoint",
        "profile",
        "policy",
        "references",
        "costs",
        "run_flops",
        "seed",
        "only",
        "provider",
        "cluster",
        "price",
        "tier",
        "scratch",
    )
)
_OF_A_START = frozenset(("out", "dry_run", "hosts", "gpus_per_node", "join"))
_OF_A_JOIN = frozenset(("partners", "replaces"))


@dataclass(frozen=True, kw_only=True, slots=True)
class Options:
    """The options of a new run, with profile and policy loaded."""

    profile: Profile
    policy: Document
    provider: str | None
    cluster: str | None
    price: float | None
    tier: Tier | None
    scratch: Path | None
    out: Path | None
    only: tuple[str, ...]
    seed: int
    command: tuple[str, ...]
    hosts: str | None
    gpus_per_node: int | None
    reach: Reach
    doubts: MakeDoubts | None = None
    references: Document | None = None
    costs: Document | None = None
    run_flops: float | None = None
    baseline: Run | None = None
    keep_checkpoint: Path | None = None


def run_new(options: Options, console: Console) -> Path:
    """Make a new run and return its directory."""
    request = _request(options)
    launcher = launcher_of(request.hosts, request.reach)
    if launcher.name != LOCAL:
        console.print(f"launcher {launcher.name}: {launcher.why}", markup=False, soft_wrap=True)
        console.print(f"run directory: {socket.gethostname()}:{request.out.absolute()}", markup=False, soft_wrap=True)
        request = replace(request, reach=counted(request.reach, console))
    with Live(console) as show:
        start(request, show)
    return request.out


def advice_for(
    scratch: Path,
    hosts: str | None,
    *,
    ssh: str | None,
    remote_python: str | None,
    listen: str | None,
    bundle: str | None = None,
) -> list[Advice]:
    """What doctor finds: of this machine, or of the hosts, to which a run would bring a bundle. Raises RunError for a
    node set that is none, and for a damaged bundle."""
    if hosts is None:
        from .doctor import examine

        return examine(scratch)
    from .doctor_hosts import examine_hosts

    if bundle is not None and bundle != "auto":
        load_bundle(Path(bundle))
    python = remote_python or ("python3" if bundle else None)
    reach = reach_from(ssh=ssh, remote_python=python, listen=listen)
    return examine_hosts(hosts, reach, scratch.absolute(), bundled=bundle is not None)


@contextlib.contextmanager
def bundle_for(given: str | None, hosts: str | None, resumed: Path | None) -> Iterator[Bundle | None]:
    """The bundle of a file, or with "auto" one made for this run alone, for nodes with a Python as here.

    Raises RunError where it is damaged or cannot be made, and where nodes are not reached by ssh.
    """
    if given is None:
        yield None
    elif hosts is None and resumed is None:
        raise RunError("--bundle goes with --hosts (inside Slurm: hwlottery launch slurm --bundle FILE)")
    elif given != "auto":
        yield load_bundle(Path(given))
    else:
        with tempfile.TemporaryDirectory(prefix="hwlottery-bundle-") as folder:
            yield make_bundle(Path(folder) / default_name())


def reach_from(
    *,
    ssh: str | None,
    remote_python: str | None,
    listen: str | None,
    join_within: float = LOCAL_JOIN_S,
    allow_unlike: bool = False,
    bundle: Bundle | None = None,
) -> Reach:
    """How nodes are reached, from the options. Raises RunError for what a shell could not split."""
    return Reach(
        ssh=make_ssh(ssh, remote_python, "python3" if bundle else sys.executable),
        bundle=bundle,
        listen=listen,
        join_within_s=join_within,
        allow_unlike=allow_unlike,
    )


def run_on(
    path: Path,
    *,
    rerun_changed: bool,
    command: tuple[str, ...],
    reach: Reach,
    console: Console,
    doubts: MakeDoubts | None = None,
) -> Path:
    """Go on with a run."""
    reach = counted(reach, console)
    with Live(console) as show:
        resume(path, show, rerun_changed=rerun_changed, command=command, reach=reach, doubts=doubts)
    return path


def _refuse(options: Iterable[str], why: str) -> None:
    names = ", ".join(f"--{name.replace('_', '-')}" for name in sorted(options))
    if names:
        raise RunError(f"{names} {why}")


def run_join(request: JoinRequest, console: Console) -> Path:
    """Take nodes into an accepted run and return the directory of the new one."""
    console.print(f"run directory: {socket.gethostname()}:{request.out.absolute()}", markup=False, soft_wrap=True)
    with Live(console) as show:
        accept(replace(request, reach=counted(request.reach, console)), show)
    return request.out


def join_request(accepted: Run, preferred: tuple[str, ...], stated: set[str], **wishes: Any) -> JoinRequest:
    """What is asked of a join, from the options. Raises RunError where options of the run itself are given again."""
    _refuse(stated & _OF_THE_RUN, "cannot be given with --join: nodes are taken in by the run's own")
    out = wishes.pop("out") or Path("runs") / f"joined-{now():%Y%m%d-%H%M%S}"
    return JoinRequest(accepted=accepted, preferred=preferred, out=out, **wishes)


def refuse_with_resume(stated: set[str]) -> None:
    """Options of the run itself, which a resumed one has already. Raises RunError."""
    again = stated & (_OF_THE_RUN | _OF_A_START | _OF_A_JOIN)
    _refuse(again, "cannot be given with --resume: the run goes on with its own")


def refuse_without_join(stated: set[str]) -> None:
    """Options that only a join has. Raises RunError."""
    _refuse(stated & _OF_A_JOIN, "says something of a join only: give --join RUN")


def refuse_unknown_probes(names: Iterable[str]) -> None:
    """Raises RunError for a name that no probe has."""
    known = [probe.name for probe in PROBES]
    for name in names:
        if name not in known:
            raise RunError(f"unknown probe {name[:80]!r}{meant(name[:80], known)}: choose {', '.join(known)}")


def planned(options: Options) -> Preview:
    """What a new run with these options would do."""
    return plan_of(_request(options))


def show_plan(plan: Preview, console: Console, *, as_json: bool) -> None:
    """Say what would run, for how long and for how much money."""
    console.print(_plan_table(plan))
    console.print(_plan_sentence(plan), markup=False)
    if as_json:
        told = {"expected_s": plan.expected_s, "node_hours": plan.node_hours, "usd": plan.usd}
        sys.stdout.write(msgspec.json.encode({**msgspec.to_builtins(plan), **told}).decode() + "\n")


def _request(options: Options) -> Request:
    refuse_unknown_probes(options.only)
    scratch = (options.scratch or Path()).resolve()
    if options.hosts is None and not scratch.is_dir():
        raise RunError(f"--scratch {scratch} is no directory: make it, or name another")
    return Request(
        out=options.out or Path("runs") / f"{options.profile.name}-{now():%Y%m%d-%H%M%S}",
        profile=options.profile,
        policy=options.policy,
        scratch=scratch,
        provider=options.provider,
        cluster=options.cluster,
        price_per_gpu_hour=options.price,
        tier=options.tier,
        seed=options.seed,
        only=options.only,
        command=options.command,
        hosts=options.hosts,
        gpus_per_node=options.gpus_per_node,
        reach=options.reach,
        doubts=options.doubts,
        references=options.references,
        costs=options.costs,
        run_flops=options.run_flops,
        baseline=options.baseline,
        keep_checkpoint=options.keep_checkpoint,
    )


def _plan_table(plan: Preview) -> Table:
    nodes = f"{plan.nodes} node{'' if plan.nodes == 1 else 's'}"
    table = Table(title=f"profile {plan.profile} on {nodes}, {plan.ranks} ranks ({plan.device})")
    table.add_column("probe")
    for name in ("rounds", "trials", "expected"):
        table.add_column(name, justify="right")
    for part in plan.probes:
        if part.skipped:
            table.add_row(part.probe, "-", "-", "left out", style="dim")
        else:
            table.add_row(part.probe, str(part.rounds), str(part.trials), duration(part.expected_s))
    return table


def _plan_sentence(plan: Preview) -> str:
    """Time, node-hours, and money or what is missing to say it."""
    money = f"{plan.usd:.2f} USD of rental" if plan.usd is not None else _no_money(plan.price_per_gpu_hour)
    return f"about {duration(plan.expected_s)} in all, {plan.node_hours:.2g} node-hours, {money}"


def _no_money(price: float | None) -> str:
    return "no price given (--price)" if price is None else "no money: no accelerator here is priced"
