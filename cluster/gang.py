"""A gang: one trial on the ranks of one or more nodes, from getting them ready to its outcome."""

import asyncio
import contextlib
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

from msgspec import Struct

from ..evidence import AnyReading
from .asking import Asking, NodeLost
from .node import one_line
from .node_tasks import abort_here, perform_here, prepare_here
from .orders import Part, PartResult, Prepared, RankResult, Warmth
from .outcomes import merged
from .slots import WARM_WITHIN_S
from .trials import Outcome, Trial, WorkerLost

_ANSWER_WITHIN_S = 15.0


class Sent(Struct, frozen=True, kw_only=True):
    """A trial as it is sent out: with its id and the run's seed."""

    id: str
    trial: Trial
    seed: int


class Returned(Struct, frozen=True, kw_only=True):
    """What came back of a trial: its outcome, when it ran, what was read beside it, and what its ranks printed."""

    outcome: Outcome
    start: datetime
    end: datetime
    beside: tuple[AnyReading, ...] = ()
    replaced: tuple[str, ...] = ()
    died_idle: tuple[str, ...] = ()  # ranks whose process had ended before the trial, while nothing was asked of it
    lost_nodes: tuple[str, ...] = ()
    logs: dict[str, str] = {}


class Gang:
    """The ranks of one trial."""

    def __init__(self, sent: Sent, asking: Asking) -> None:
        self._sent = sent
        self._trial = sent.trial
        self._asking = asking
        self._local: dict[str, list[int]] = {}  # each node's places among the ranks
        for place, rank in enumerate(sent.trial.ranks):
            self._local.setdefault(rank.node, []).append(place)
        self._nodes = tuple(self._local)

    async def run(self) -> Returned:
        """Have the ranks ready and at work, each node at once; what came back."""
        start = datetime.now(UTC)
        prepared = await self._prepared()
        trouble = self._trouble(prepared.ready)
        if trouble is not None:
            return Returned(
                outcome=trouble,
                start=start,
                end=datetime.now(UTC),
                died_idle=prepared.died_idle,
                lost_nodes=self._lost(),
            )
        meetings = (warmth.meeting for warmth in prepared.ready.values() if not isinstance(warmth, str))
        meeting = next(filter(None, meetings), None)
        start = datetime.now(UTC)
        parts = [part for part in await self._performed(meeting) if part]
        return Returned(
            outcome=merged(self._trial, parts, {node: self._asking.lost[node] for node in self._lost()}),
            start=start,
            end=datetime.now(UTC),
            beside=tuple(reading for part in parts for reading in part.beside),
            replaced=tuple(subject for part in parts for subject in part.replaced),
            died_idle=prepared.died_idle,
            lost_nodes=self._lost(),
            logs={rank.subject: rank.log for part in parts for rank in part.ranks if rank.log},
        )

    def _lost(self) -> tuple[str, ...]:
        return tuple(node for node in self._nodes if node in self._asking.lost)

    def _subjects(self, node: str) -> tuple[str, ...]:
        return tuple(self._trial.ranks[place].subject for place in self._local[node])

    async def _prepared(self) -> Prepared:
        """Have all ranks ready, of all nodes together. The first rank leads several nodes."""
        parts = await asyncio.gather(*(self._prepare(node) for node in self._nodes))
        return Prepared(
            ready={subject: found for part in parts for subject, found in part.ready.items()},
            died_idle=tuple(subject for part in parts for subject in part.died_idle),
        )

    async def _prepare(self, node: str) -> Prepared:
        leader = self._trial.ranks[0].subject if self._trial.collective and len(self._nodes) > 1 else None
        env = tuple(sorted(self._trial.env.items()))
        subjects = self._subjects(node)
        within = WARM_WITHIN_S + _ANSWER_WITHIN_S
        try:
            prepared: Prepared = await self._asking.ask(node, within, prepare_here, subjects, env, leader)
        except NodeLost as error:
            return Prepared(ready=dict.fromkeys(subjects, str(error)))
        except Exception as error:  # noqa: BLE001  # a full /dev/shm, say: it costs this trial, not the run
            return Prepared(ready=dict.fromkeys(subjects, one_line(error)))
        return prepared

    def _trouble(self, ready: Mapping[str, Warmth | str]) -> Outcome | None:
        """The outcome of a trial whose ranks are not all ready; None where they are."""
        trouble = {subject: found for subject, found in ready.items() if isinstance(found, str)}
        if not trouble:
            return None
        lost = self._lost()
        why = next(iter(trouble.values()))
        return WorkerLost(subjects=lost or tuple(trouble), message=why if lost else f"did not start: {why}")

    async def _performed(self, meeting: str | None) -> list[PartResult | None]:
        """Send each node its part; None for a node that was lost. When one fails a collective the others are told."""
        return await asyncio.gather(*(self._perform(node, part) for node, part in self._parts(meeting)))

    async def _perform(self, node: str, part: Part) -> PartResult | None:
        within = self._trial.deadline_s + _ANSWER_WITHIN_S
        try:
            result: PartResult = await self._asking.ask(node, within, perform_here, part)
        except NodeLost:
            await self._abort(node)
            return None
        except Exception as error:  # noqa: BLE001  # a full disk on the node, say: it costs this trial, not the run
            await self._abort(node)
            return self._all_raised(node, one_line(error))
        if self._trial.collective and any(rank.fate != "returned" for rank in result.ranks):
            await self._abort(node)
        return result

    def _parts(self, meeting: str | None) -> Iterator[tuple[str, Part]]:
        """Each node's part. What all share is made once: a gang may have thousands of ranks."""
        ranks = tuple(rank.subject for rank in self._trial.ranks)
        nodes = tuple(rank.node for rank in self._trial.ranks)
        for node, local in self._local.items():
            yield (
                node,
                Part(
                    trial=self._sent.id,
                    function=self._trial.function,
                    params=dict(self._trial.params),
                    env=tuple(sorted(self._trial.env.items())),
                    collective=self._trial.collective,
                    deadline_s=self._trial.deadline_s,
                    ranks=ranks,
                    nodes=nodes,
                    local=tuple(local),
                    seed=self._sent.seed,
                    meeting=meeting,
                ),
            )

    async def _abort(self, failed: str) -> None:
        others = [node for node in self._nodes if node != failed and node not in self._asking.lost]
        if self._trial.collective:
            await asyncio.gather(*(self._tell_to_end(node) for node in others))

    async def _tell_to_end(self, node: str) -> None:
        with contextlib.suppress(NodeLost):
            await self._asking.ask(node, _ANSWER_WITHIN_S, abort_here, self._sent.id)

    def _all_raised(self, node: str, message: str) -> PartResult:
        """The part of a node whose worker raised before or after its ranks did their work."""
        ranks = tuple(RankResult(subject=subject, fate="raised", message=message) for subject in self._subjects(node))
        return PartResult(node=node, ranks=ranks)
