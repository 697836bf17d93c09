"""Evidence: the metric catalogue, the records, and the run directory they are written to."""

from .errors import HwlotteryError, RunError
from .header import (
    FORMAT,
    TIERS,
    BaselineRun,
    Device,
    Document,
    Joined,
    Keep,
    Launcher,
    LeftCheckpoint,
    LeftFile,
    Promised,
    RunHeader,
    Segment,
    Tier,
)
from .metrics import CATALOGUE, Metric, is_metric, metric, value_of, value_of_samples
from .reading import Run, read_run
from .readings import AnyReading, Missing, Noticed, Observed, Reading, reading
from .records import AnyRecord, Event, Fact, Fill, Measurement, NotMeasured, Params, TrialPlan, measured
from .sequence import Problem
from .subjects import Subject, node_name, parse_subject
from .writing import RunWriter

__all__ = [
    "CATALOGUE",
    "FORMAT",
    "TIERS",
    "AnyReading",
    "AnyRecord",
    "BaselineRun",
    "Device",
    "Document",
    "Event",
    "Fact",
    "Fill",
    "HwlotteryError",
    "Joined",
    "Keep",
    "Launcher",
    "LeftCheckpoint",
    "LeftFile",
    "Measurement",
    "Metric",
    "Missing",
    "NotMeasured",
    "Noticed",
    "Observed",
    "Params",
    "Problem",
    "Promised",
    "Reading",
    "Run",
    "RunError",
    "RunHeader",
    "RunWriter",
    "Segment",
    "Subject",
    "Tier",
    "TrialPlan",
    "is_metric",
    "measured",
    "metric",
    "node_name",
    "parse_subject",
    "read_run",
    "reading",
    "value_of",
    "value_of_samples",
]
