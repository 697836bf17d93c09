"""Generated rechecks: a run that carries the earlier one it is held against, under a policy that could be signed."""

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
from generated_runs import as_run, make_run, write_records

from hwlottery.evidence import AnyRecord, BaselineRun, Run, RunHeader, RunWriter, read_run
from hwlottery.evidence.reading import sha256_of
from hwlottery.scoring import load_policy

POLICY = "name: weekly\nextends: recheck\nsignable: true\n"
SIZE = {"nodes": 4, "accelerators": 2}


@cache
def policy_text() -> str:
    """The policy as a run carries it, with the texts of what it extends."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "weekly.yaml"
        file.write_text(POLICY)
        return load_policy(str(file)).text


def make_recheck(faults: list[str], seed: int = 8) -> tuple[RunHeader, list[AnyRecord]]:
    """The header, which names the earlier run, and the records of the recheck."""
    header, records = make_run(**SIZE, faults=faults, policy_text=policy_text(), seed=seed)  # type: ignore[arg-type]
    return msgspec.structs.replace(header, baseline=BaselineRun(run_id="generated-7", sha256="0" * 64)), records


def baseline() -> Run:
    """The accepted run, healthy in everything."""
    return as_run(*make_run(**SIZE, policy_text=policy_text(), seed=7))  # type: ignore[arg-type]


def write_recheck(path: Path, faults: list[str], seed: int = 8) -> Path:
    """The recheck as a directory, with the copy of the accepted run in it."""
    with TemporaryDirectory() as folder:
        header, records = make_run(**SIZE, policy_text=policy_text(), seed=7)  # type: ignore[arg-type]
        before = write_records(Path(folder) / "before", header, records)
        named = BaselineRun(run_id=header.run_id, sha256=sha256_of(before / "SHA256SUMS"))
        header, records = make_recheck(faults, seed)
        writer = RunWriter.create(path, msgspec.structs.replace(header, baseline=named))
        writer.keep_baseline(read_run(before))
        writer.write(records)
        writer.finish()
    return path
