"""Dask's scheduler and worker without their HTTP servers: these would listen without TLS, and have no routes here."""

from typing import Any, Literal

from distributed import Scheduler, Worker

from .losses import Departed

# Dask has hundreds of workers say every few seconds that they live, which the head pays for beside its rounds. A node
# that ends closes its connection, one that is silent misses its deadline: this is the last resort of three.
HEARTBEAT_EVERY_S = 10.0  # a worker that misses six of them is taken for lost (worker-ttl)


class SilentScheduler(Scheduler):
    """A scheduler that listens for the control plane alone."""

    def __init__(self, *args: Any, **options: Any) -> None:
        self.departed: dict[str, Departed] = {}
        super().__init__(*args, **options)

    def start_http_server(self, *_: Any, **__: Any) -> None:
        """Start none."""

    def heartbeat_worker(self, **said: Any) -> dict[str, Any]:
        """Note that a worker lives, and tell it when to say so again."""
        answer: dict[str, Any] = super().heartbeat_worker(**said)
        return {**answer, "heartbeat-interval": HEARTBEAT_EVERY_S}

    def last_heard(self, name: str, answered: float) -> Departed | None:
        """Where a node's worker listens or listened, and when it was last heard of, `answered` or later; None where it
        never joined."""
        state = self.workers.get(self.aliases.get(name, ""))
        found = _departed(state) if state else self.departed.get(name)
        return found and Departed(address=found.address, last_heard=max(found.last_heard, answered))

    async def remove_worker(self, address: str, **options: Any) -> Literal["OK", "already-removed"]:
        """Remember of a worker that leaves where it was, and when it was last heard of."""
        state = self.workers.get(address)
        if state is not None:
            self.departed[str(state.name)] = _departed(state)
        answer: Literal["OK", "already-removed"] = await super().remove_worker(address, **options)
        return answer


def _departed(state: Any) -> Departed:
    return Departed(address=state.address, last_heard=state.last_seen)


class SilentWorker(Worker):
    """A worker that listens for the control plane alone."""

    def start_http_server(self, *_: Any, **__: Any) -> None:
        """Start none."""
