"""Dask's scheduler and worker without their HTTP servers: these would listen without TLS, and have no routes here."""

from typing import Any

from distributed import Scheduler, Worker

# Dask has hundreds of workers say every few seconds that they live, which the head pays for beside its rounds. A node
# that ends closes its connection, one that is silent misses its deadline: this is the last resort of three.
HEARTBEAT_EVERY_S = 10.0  # a worker that misses six of them is taken for lost (worker-ttl)


class SilentScheduler(Scheduler):
    """A scheduler that listens for the control plane alone."""

    def start_http_server(self, *_: Any, **__: Any) -> None:
        """Start none."""

    def heartbeat_worker(self, **said: Any) -> dict[str, Any]:
        """Note that a worker lives, and tell it when to say so again."""
        answer: dict[str, Any] = super().heartbeat_worker(**said)
        return {**answer, "heartbeat-interval": HEARTBEAT_EVERY_S}


class SilentWorker(Worker):
    """A worker that listens for the control plane alone."""

    def start_http_server(self, *_: Any, **__: Any) -> None:
        """Start none."""
