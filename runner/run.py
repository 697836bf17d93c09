"""A run as commands start it: new, resumed, or joined to an accepted one; and each way to end early, with its line."""

import contextlib
import errno
import secrets
import shutil
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from ..cluster.local import promised_here
from ..evidence import (
    FORMAT,
    BaselineRun,
    Document,
    Event,
    HwlotteryError,
    Keep,
    Promised,
    Run,
    RunError,
    RunHeader,
    RunWriter,
    Tier,
)
from ..evidence.reading import read_header, sha256_of
from ..evidence.writing import now
from ..probes import PROBES
from ..probes.profiles import Profile, profile_from_text
from .accepting import JoinRequest, is_join_beginning, joined_header
from .joining import Reach, launcher_of, names_of, promised_nodes
from .kept import left_by
from .preview import Preview, preview
from .promise import cluster_now, cluster_of, refuse_odd_names_of
from .session import MakeDoubts, Session, Show
from .stopping import Terminated, signals_raise


class RunStopped(HwlotteryError):
    """The run was stopped by a signal; its directory is valid and resumes.

    `exit_code` is 128 plus the signal: 130 for Ctrl-C, 143 for SIGTERM, 129 for SIGHUP (the ssh session is gone).
    """

    def __init__(self, path: Path, exit_code: int) -> None:
        self.path = path
        self.exit_code = exit_code
        super().__init__(f"stopped; what was measured is kept. Go on with: hwlottery run --resume {path}")


class RunCutShort(HwlotteryError):
    """The surroundings ended the run: a full disk, say."""

    exit_code = 6


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """What a user asks of a new run."""

    out: Path
    profile: Profile
    policy: Document
    scratch: Path
    provider: str | None = None
    cluster: str | None = None
    price_per_gpu_hour: float | None = None
    tier: Tier | None = None
    seed: int = 0
    only: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    hosts: str | None = None
    gpus_per_node: int | None = None
    reach: Reach = field(default_factory=Reach)
    doubts: MakeDoubts | None = None
    references: Document | None = None
    costs: Document | None = None
    run_flops: float | None = None
    baseline: Run | None = None
    keep_checkpoint: Path | None = None

    @property
    def promised(self) -> tuple[Promised, ...]:
        """The nodes asked for: those of --hosts or of the Slurm step, else this machine.

        Raises RunError for a node set that is none.
        """
        names = names_of(self.hosts, self.reach)
        if not names:
            return (promised_here(self.profile.slots),)
        return promised_nodes(names, self.gpus_per_node, self.profile.slots)


def start(request: Request, show: Show) -> None:
    """Run from the start into a new directory. Raises RunError, RunStopped or RunCutShort, each one line."""
    nodes = request.promised
    header = RunHeader(
        format=FORMAT,
        run_id=f"{now():%Y%m%d-%H%M%S}-{secrets.token_hex(3)}",
        provider=request.provider,
        cluster=request.cluster,
        price_per_gpu_hour=request.price_per_gpu_hour,
        profile=Document(name=request.profile.name, sha256=request.profile.sha256, text=request.profile.text),
        policy=request.policy,
        references=request.references,
        costs=request.costs,
        run_flops=request.run_flops,
        seed=request.seed,
        launcher=launcher_of(request.hosts, request.reach),
        promised=nodes,
        filesystems=tuple(f"{node.node}/fs:{request.scratch}" for node in nodes),
        declared_tier=request.tier,
        only=request.only,
        baseline=_named(request.baseline) if request.baseline else None,
        keep=_keep(request),
    )
    session = Session(
        writer=RunWriter.create(request.out, header),
        profile=request.profile,
        show=show,
        command=request.command,
        reach=request.reach,
        doubts=request.doubts,
    )
    with _nothing_left_unless(lambda: bool(session.writer.header.segments), request.out):
        if request.baseline is not None:
            session.writer.keep_baseline(request.baseline)
        _finish_or_say(session)


def _keep(request: Request) -> Keep | None:
    """Where a checkpoint is left, and what the baseline left there. Raises RunError for a place that is none."""
    if request.keep_checkpoint is None:
        return None
    place = request.keep_checkpoint.absolute()
    earlier = left_by(request.baseline) if request.baseline is not None else None
    try:
        return msgspec.convert({"directory": str(place), "earlier": earlier}, Keep, from_attributes=True)
    except msgspec.ValidationError as error:
        raise RunError(f"--keep-checkpoint {str(place)[:200]!r}: no place to leave a checkpoint in") from error


def _named(baseline: Run) -> BaselineRun:
    return BaselineRun(run_id=baseline.header.run_id, sha256=sha256_of(baseline.path / "SHA256SUMS"))


def resume(
    path: Path,
    show: Show,
    *,
    rerun_changed: bool,
    command: tuple[str, ...],
    reach: Reach | None = None,
    doubts: MakeDoubts | None = None,
) -> None:
    """Go on with a run that was cut short, with its own profile, policy and seed.

    Trials that ended are not run again. Raises RunError where software, hardware or methods have changed since, unless
    `rerun_changed`, with the differences; RunStopped or RunCutShort as `start` does.
    """
    refuse_odd_names_of(read_header(path), str(path))
    writer, run = RunWriter.resume(path)
    profile = profile_from_text(run.header.profile.text, f"{path}/run.json")
    _finish_or_say(
        Session(
            writer=writer,
            profile=profile,
            show=show,
            command=command,
            earlier=run,
            rerun_changed=rerun_changed,
            reach=reach or Reach(),
            doubts=doubts,
        )
    )


def accept(request: JoinRequest, show: Show) -> None:
    """Take nodes into an accepted run: a new run that begins as its copy, with its profile, policy and seed.

    Raises RunError where that cannot be, or where software, hardware or methods have changed since, unless
    `rerun_changed`; nothing is left behind then. RunStopped or RunCutShort as `start` does.
    """
    header = joined_header(request)
    session = Session(
        writer=RunWriter.join(request.out, request.accepted, header),
        profile=profile_from_text(header.profile.text, f"{request.accepted.path}/run.json"),
        show=show,
        command=request.command,
        earlier=request.accepted,
        rerun_changed=request.rerun_changed,
        reach=request.reach,
        doubts=request.doubts,
    )
    with _nothing_left_unless(lambda: not is_join_beginning(session.writer.header), request.out):
        _finish_or_say(session)


@contextlib.contextmanager
def _nothing_left_unless(begun: Callable[[], bool], out: Path) -> Iterator[None]:
    """Remove a run directory of ours where the run was refused before anything was measured: the mended command can
    then name it again."""
    try:
        yield
    except (RunError, OSError):
        if not begun():
            shutil.rmtree(out, ignore_errors=True)
        raise


def plan_of_join(request: JoinRequest) -> Preview:
    """What `accept` would do with this request."""
    header = joined_header(request)
    profile = profile_from_text(header.profile.text, f"{request.accepted.path}/run.json")
    return preview(PROBES, profile, cluster_now(header), header.only, header.price_per_gpu_hour)


def plan_of(request: Request) -> Preview:
    """What `start` would do with this request."""
    cluster = cluster_of(request.promised, request.scratch)
    return preview(PROBES, request.profile, cluster, request.only, request.price_per_gpu_hour)


def _finish_or_say(session: "Session") -> None:
    """Drive a session to its end. However it ends, the directory is left valid."""
    path = session.writer.path
    try:
        with signals_raise():
            session.drive()
        session.writer.finish()
    except (KeyboardInterrupt, Terminated) as stop:
        signum = stop.signum if isinstance(stop, Terminated) else signal.SIGINT
        with contextlib.suppress(OSError):
            session.writer.write([Event(time=now(), kind="interrupted", detail=signal.Signals(signum).name)])
        raise RunStopped(path, 128 + signum) from None
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO):
            raise
        raise RunCutShort(
            f"cannot write to {error.filename or path}: {error.strerror}. What was measured is kept; make room, then "
            f"go on with: hwlottery run --resume {path}"
        ) from None
    finally:
        session.writer.close()
