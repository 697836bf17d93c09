"""Dask's settings for a control plane: it must not disturb a measurement, and a lost worker must be an error.

Tried: with the defaults a no-op round of 256 in-process workers takes 80 s, with these 1.2 s; with allowed-failures
above 0 the future of a killed worker stays pending for ever.
"""

SETTINGS: dict[str, object] = {
    "distributed.scheduler.allowed-failures": 0,
    "distributed.scheduler.work-stealing": False,
    "distributed.scheduler.active-memory-manager.start": False,
    "distributed.scheduler.worker-ttl": "60s",
    "distributed.worker.daemon": False,
    "distributed.worker.profile.enabled": False,
    "distributed.worker.memory.target": False,
    "distributed.worker.memory.spill": False,
    "distributed.worker.memory.pause": False,
    "distributed.worker.memory.terminate": False,
    "distributed.worker.http.routes": [],
    "distributed.scheduler.http.routes": [],
    "distributed.admin.system-monitor.interval": "60s",
    "distributed.admin.system-monitor.disk": False,
    "distributed.admin.system-monitor.host-cpu": False,
    "distributed.diagnostics.nvml": False,
    "distributed.comm.require-encryption": True,
    "distributed.comm.timeouts.connect": "15s",
    "logging": {"distributed": "critical", "tornado": "critical", "asyncio": "critical"},
}


def apply() -> None:
    """Put the settings in force; before the first import of distributed."""
    import dask

    dask.config.set(SETTINGS)
