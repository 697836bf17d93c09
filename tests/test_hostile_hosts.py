"""Hosts and run directories that are not what they seem: names that are options, words that drive a terminal."""

import fcntl
import json
import os
import re
from pathlib import Path

import pytest
from click.testing import CliRunner
from generated_runs import make_run, write_run

from hwlottery.cli import cli
from hwlottery.cluster.desk import Arrival
from hwlottery.cluster.network import address_towards
from hwlottery.cluster.place import Place
from hwlottery.cluster.roll_call import RollCall
from hwlottery.evidence import Event, Fact, NotMeasured, RunError, RunWriter, read_run
from hwlottery.evidence.writing import now
from hwlottery.runner.once import alone

ODD = (
    "-oProxyCommand=touch${IFS}/tmp/x",
    "n1;touch x",
    "@all",
    "node[1-999999999]",
    "a\x1b]0;x\x07",
    "user@n1",
    "../n1",
)
SAID = "\x1b]0;evil\x07<script>alert(1)\x9b31m\u202eback\r\nnext\tword\ud800"
SHOWN = "\\x1b]0;evil\\x07<script>alert(1)\\x9b31m\\u202eback\\x0d\nnext\tword\\ud800"


def unfinished(folder: Path, name: str) -> Path:
    """A run that can be gone on with, whose second node has this name in run.json."""
    run = write_run(folder / "run", nodes=2, accelerators=1)
    (run / "SHA256SUMS").unlink()
    return renamed(run, name)


def renamed(run: Path, name: str) -> Path:
    header = json.loads((run / "run.json").read_text())
    header["promised"][1]["node"] = name
    header["launcher"] = {"name": "ssh", "why": "--hosts n00,n01"}
    (run / "run.json").write_text(json.dumps(header))
    return run


@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize(
    "command", [["run", "--resume"], ["recheck", "--dry-run", "--baseline"], ["run", "--hosts", "n7", "--join"]]
)
def test_a_name_in_a_run_directory_that_hosts_would_refuse_is_refused_in_one_line(command, name, tmp_path):
    run = unfinished(tmp_path, name) if "--resume" in command else renamed(write_run(tmp_path / "run", nodes=2), name)
    before = {file: file.read_bytes() for file in run.rglob("*") if file.is_file()}
    done = CliRunner().invoke(cli, [*command, str(run)], catch_exceptions=False)
    assert done.exit_code == 2
    # A join looks first at whether the accepted run is whole, and a promise of such a name is none.
    assert ("promised and no node" if "--join" in command else "is no plain host name") in done.output
    assert done.output.count("\n") == 1
    assert {file: file.read_bytes() for file in run.rglob("*") if file.is_file()} == before


def test_what_a_host_said_stands_in_the_records_with_its_control_characters_shown(tmp_path):
    header, _ = make_run(nodes=1)
    writer = RunWriter.create(tmp_path / "run", header)
    writer.write(
        [
            Event(time=now(), kind="node_lost", subject="n00", detail=f"never joined: {SAID}"),
            NotMeasured(metric="matmul.bf16", subject="n00/gpu0", reason="raised", detail=SAID),
            Fact(subject="n00", key="os.name", value=SAID),
            Event(time=now(), kind="note", detail="\x1b" * 4000),
        ]
    )
    writer.close()
    run = read_run(tmp_path / "run")
    assert run.events[0].detail == f"never joined: {SHOWN}"
    assert (run.not_measured[0].detail, run.facts[0].value) == (SHOWN, SHOWN)
    assert len(run.events[1].detail) == 4000
    assert "\\u001b" not in (tmp_path / "run" / "events.jsonl").read_text()


def test_a_node_that_announces_itself_by_no_name_is_refused():
    call = RollCall(Place(launcher="mpi", why="", node="n1", number=0, count=2, rank=0, local_rank=0, processes=2))
    answer = call.answer(Arrival(name="\x1b]0;evil\x07", number=1, count=2), "10.0.0.1")
    assert "no name of a node" in answer.refused
    assert call.here == ("n1",)


def test_a_run_that_is_refused_at_its_start_leaves_nothing_behind(tmp_path):
    out = tmp_path / "run"
    given = ["run", "--hosts", "no.such.host.invalid", "--gpus-per-node", "0", "--out", str(out)]
    done = CliRunner().invoke(cli, given, catch_exceptions=False)
    assert done.exit_code == 2
    assert "no route to any of the hosts (no.such.host.invalid:" in done.output
    assert not out.exists()


def test_a_run_directory_that_was_there_before_is_never_removed(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "mine").touch()
    given = ["run", "--hosts", "no.such.host.invalid", "--out", str(tmp_path / "run")]
    assert CliRunner().invoke(cli, given, catch_exceptions=False).exit_code == 2
    assert (tmp_path / "run" / "mine").exists()


@pytest.mark.parametrize("host", ["no.such.host.invalid", "n" * 300, "a..b"])
def test_a_name_that_does_not_resolve_is_said(host):
    with pytest.raises(OSError, match=re.escape(host[:80])) as refused:
        address_towards(host)
    assert refused.value.strerror


@pytest.mark.parametrize("listen", ["10.0.0.1:99999", "10.0.0.1:-1", "10.0.0.1:x", "", ":80", "h:" + "9" * 5000])
def test_a_port_that_is_none_is_one_line(listen):
    done = CliRunner().invoke(cli, ["doctor", "--hosts", "localhost", "--listen", listen], catch_exceptions=False)
    assert done.exit_code == 2
    assert "give ADDRESS or ADDRESS:PORT" in done.output


@pytest.mark.parametrize("listen", ["no.such.host.invalid", "192.0.2.1:80"])
def test_an_address_that_is_not_this_machines_is_said_by_doctor(listen):
    done = CliRunner().invoke(cli, ["doctor", "--hosts", "localhost", "--listen", listen], catch_exceptions=False)
    assert done.exit_code == 2
    assert f"cannot listen on {listen.partition(':')[0]}" in done.output


def test_the_lock_of_a_recheck_is_removed_and_holds_while_another_waits(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with alone("a run"):
        assert len(list(tmp_path.iterdir())) == 1
        with pytest.raises(RunError, match="another recheck of a run is under way"), alone("a run"):
            pass
        assert len(list(tmp_path.iterdir())) == 1
    assert list(tmp_path.iterdir()) == []


def test_a_lock_that_its_holder_removes_meanwhile_is_made_anew(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    real, removed = fcntl.flock, []

    def late(descriptor: int, how: int) -> None:
        if not removed:
            removed.append(next(tmp_path.iterdir()))
            removed[0].unlink()
        real(descriptor, how)

    monkeypatch.setattr(fcntl, "flock", late)
    with alone("a run"):
        assert removed[0].exists()
        held = [os.path.samestat(os.fstat(number), removed[0].stat()) for number in open_files()]
        assert any(held)


def open_files() -> list[int]:
    return [
        int(entry.name) for entry in Path("/proc/self/fd").iterdir() if (Path("/proc/self/fd") / entry.name).exists()
    ]
