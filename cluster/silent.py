"""Dask's scheduler and worker without their HTTP servers: these would listen without TLS, and have no routes here."""

from typing import Any

from distributed import Scheduler, Worker


class SilentScheduler(Scheduler):
    """A scheduler that listens for the control plane alone."""

    def start_http_server(self, *_: Any, **__: Any) -> None:
        """Start none."""


class SilentWorker(Worker):
    """A worker that listens for the control plane alone."""

    def start_http_server(self, *_: Any, **__: Any) -> None:
        """Start none."""
