"""What gpu-check has found, as a table for people and one line of JSON for programs."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from ..cluster import Trial
from ..evidence import AnyReading, Device, Measurement, Missing, Reading, measured, metric, value_of
from .by_hand import Value, values_of

ELSEWHERE = {
    "all_reduce": "NCCL between ranks needs two GPUs",
    "filesystem": "needs fio and a run of hwlottery",
    "inventory": "needs a run of hwlottery",
    "topology": "needs a run of hwlottery",
    "health": "sensors beside the work need a run of hwlottery",
    "report": "verdict and report need a run of hwlottery",
}


@dataclass(kw_only=True, slots=True)
class Check:
    """What has come of the check so far."""

    device: Device
    started: float = field(default_factory=time.monotonic)
    readings: list[Measurement] = field(default_factory=list)
    missing: list[dict[str, Any]] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)

    def take(self, trial: Trial, readings: Iterable[AnyReading]) -> None:
        """Keep a trial's readings; what it announced and did not bring is missing, and breaks the check."""
        brought = list(readings)
        for each in brought:
            if isinstance(each, Reading):
                self._keep(each)
            elif isinstance(each, Missing):
                self._miss(each.metric, each.subject, each.params, each.reason, each.detail)
        self._unfilled(trial, values_of(trial.fills) - values_of(brought), "not_returned", "")

    def fail(self, trial: Trial, error: Exception) -> None:
        """A trial that raised: all its values are missing."""
        why = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
        self._unfilled(trial, values_of(trial.fills), "raised", why)

    def skip(self, trial: Trial) -> None:
        """A trial for which no time was left."""
        self._unfilled(trial, values_of(trial.fills), "timeout", "no time was left")

    def _keep(self, each: Reading) -> None:
        kept = measured(metric=each.metric, subject=each.subject, params=each.params, samples=each.samples)
        if isinstance(kept, Measurement):
            self.readings.append(kept)
        else:
            self.broken.append(f"{each.metric}: {kept.detail}")
            self._miss(each.metric, each.subject, each.params, kept.reason, kept.detail)

    def _miss(self, name: str, subject: str, params: dict[str, Any], reason: str, detail: str) -> None:
        self.missing.append({"metric": name, "subject": subject, "params": params, "reason": reason, "detail": detail})

    def _unfilled(self, trial: Trial, values: set[Value], reason: str, why: str) -> None:
        if values:
            self.broken.append(f"{trial.function}: {reason} {why}".strip())
        for name, subject, params in sorted(values):
            self._miss(name, subject, dict(params), reason, why)


def print_check(check: Check) -> None:
    """Print the table, what was not measured and why, and last the line of JSON."""
    print(f"{'metric':<28} {'params':<46} {'value':>12} {'unit':<9} {'samples':>7}")
    for row in check.readings:
        params = " ".join(f"{key}={value}" for key, value in row.params.items())
        count = row.count or len(row.samples or ())
        print(f"{row.metric:<28} {params:<46} {value_of(row):>12.5g} {metric(row.metric).unit:<9} {count:>7}")
    for gap in check.missing:
        params = " ".join(f"{key}={value}" for key, value in gap["params"].items())
        print(f"{gap['metric']:<28} {params:<46} not measured: {gap['reason']} {gap['detail']}")
    for name, why in ELSEWHERE.items():
        print(f"{name:<28} not measured: {why}")
    print(json.dumps(_document(check)))


def _document(check: Check) -> dict[str, Any]:
    import torch

    elsewhere = [{"metric": name, "reason": "elsewhere", "detail": why} for name, why in ELSEWHERE.items()]
    return {
        "status": "broken" if check.broken else "done",
        "broken": check.broken,
        **_device(check.device),
        "torch": torch.__version__,
        "date": now(),
        "seconds": round(time.monotonic() - check.started, 1),
        "readings": [
            {
                "metric": row.metric,
                "params": row.params,
                "value": value_of(row),
                "unit": metric(row.metric).unit,
                "samples": row.count or len(row.samples or ()),
            }
            for row in check.readings
        ],
        "not_measured": check.missing + elsewhere,
    }


def _device(device: Device) -> dict[str, str | None]:
    if device == "cpu":
        import platform

        return {"device": f"cpu {platform.machine()}", "driver": None, "cuda": None}
    import pynvml
    import torch

    pynvml.nvmlInit()
    return {
        "device": torch.cuda.get_device_name(0),
        "driver": str(pynvml.nvmlSystemGetDriverVersion()),
        "cuda": torch.version.cuda,
    }


def now() -> str:
    """The time, UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")
