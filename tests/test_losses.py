"""Why a node was lost, in words that tell a crash from a cable."""

import asyncio
import errno
import os
import socket
from collections.abc import Iterator

import msgspec
import pytest
from generated_runs import as_run, make_run

from hwlottery.cluster.losses import Departed, Ending, why_lost
from hwlottery.cluster.orders import PartResult
from hwlottery.cluster.outcomes import merged
from hwlottery.cluster.trials import Rank, Trial, WorkerLost
from hwlottery.evidence import Event
from hwlottery.scoring import Finding, score_run

AT = 1764468787.0  # 02:13:07 UTC


@pytest.fixture(scope="module")
def answering() -> Iterator[str]:
    """A host that answers: a port at which somebody listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"tls://127.0.0.1:{server.getsockname()[1]}"


@pytest.fixture
def refusing() -> str:
    """A host that answers, at a port where nobody listens any more."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return f"tls://127.0.0.1:{server.getsockname()[1]}"


def said(address: str | None, ending: Ending | None = None, first: str = "") -> str:
    departed = Departed(address=address, last_heard=AT) if address else None
    return asyncio.run(why_lost(departed, lambda: ending, first))


def dead(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    async def connect(*_: object) -> None:
        raise error

    monkeypatch.setattr(asyncio, "open_connection", connect)


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (TimeoutError(), "connection timed out"),
        (OSError(errno.EHOSTUNREACH, os.strerror(errno.EHOSTUNREACH)), "no route to host"),
        (OSError(errno.ENETUNREACH, os.strerror(errno.ENETUNREACH)), "network is unreachable"),
    ],
)
@pytest.mark.parametrize("ending", [None, Ending(code=255, by_ssh=True, words="Timeout, server node2 not responding.")])
def test_a_host_that_does_not_answer_is_network_or_power_since_it_was_last_heard_of(
    monkeypatch: pytest.MonkeyPatch, error: Exception, why: str, ending: Ending | None
) -> None:
    dead(monkeypatch, error)
    assert said("tls://10.0.0.2:4711", ending, "no answer within 60 s") == (
        f"no answer since 02:13:07 UTC ({why}): network or power; its worker did not say why it ended"
    )


@pytest.mark.parametrize(
    ("ending", "words"),
    [
        (Ending(code=3, by_ssh=True, words="MemoryError"), "its worker ended with code 3: MemoryError"),
        (Ending(code=1), "its worker ended with code 1"),
        (Ending(code=0), "its worker ended with code 0"),
        (Ending(code=-9), "its worker ended by signal 9 (SIGKILL)"),
        (Ending(code=137, by_ssh=True), "its worker ended by signal 9 (SIGKILL)"),
        (Ending(code=139, by_ssh=True, words="step 4"), "its worker ended by signal 11 (SIGSEGV)"),
    ],
)
def test_a_worker_that_ended_is_told_by_its_code_or_signal(refusing: str, ending: Ending, words: str) -> None:
    assert said(refusing, ending) == words


def test_what_ssh_makes_of_a_killed_process_is_no_network_where_the_host_answers(refusing: str) -> None:
    told = said(refusing, Ending(code=255, by_ssh=True))
    assert told == "its worker ended by a signal, or its ssh did (code 255); its host answers"


def test_where_nothing_tells_how_a_worker_ended_that_is_said(refusing: str, answering: str) -> None:
    assert said(refusing) == "its worker ended, and nothing says how; its host answers"
    assert said(answering, None, "no answer within 60 s") == "no answer within 60 s; its host answers"
    assert said(None) == "its worker ended, and nothing says how"


def test_a_trial_says_why_each_of_its_lost_nodes_was_lost() -> None:
    ranks = tuple(Rank(node=node, subject=f"{node}/slot0", device="cpu", index=0) for node in ("n01", "n02"))
    trial = Trial(function="x:y", ranks=ranks, expected_s=1.0, deadline_s=2.0, fills=())
    parts: list[PartResult] = []
    one = merged(trial, parts, {"n02": "no answer since 02:13:07 UTC"})
    assert one == WorkerLost(subjects=("n02",), message="no answer since 02:13:07 UTC")
    both = merged(trial, parts, {"n01": "a", "n02": "b"})
    assert isinstance(both, WorkerLost)
    assert both.message == "n01: a; n02: b"


def responds(fault: str, detail: str) -> Finding:
    header, records = make_run(nodes=3, accelerators=2, faults=[fault])

    records = [
        msgspec.structs.replace(one, detail=detail) if isinstance(one, Event) and one.kind == "node_lost" else one
        for one in records
    ]
    verdict = score_run(as_run(header, records))
    (found,) = (f for f in verdict.findings if f.check == "node.responds" and f.result == "fail")
    assert found.statement in verdict.reasons[0]
    return found


def test_the_verdict_says_why_a_node_never_joined() -> None:
    refused = "ssh: connect to host n02 port 22: Connection refused"
    found = responds("never_joined@n02", f"never joined: {refused}")
    assert (found.observed, found.statement) == ("never joined", f"n02 never joined: {refused}.")


def test_the_verdict_says_why_a_node_was_lost_and_says_it_once() -> None:
    why = "no answer since 02:13:07 UTC (connection timed out): network or power"
    found = responds("lost@n01", why)
    assert (found.observed, found.statement) == ("was lost", f"n01 was lost: {why}.")
