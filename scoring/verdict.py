"""The verdict and its findings: what verdict.json holds, and what every report shows."""

from datetime import datetime
from typing import Literal

from msgspec import Struct

from .projection import Situation, Spare

VerdictWord = Literal["GO", "CONDITIONAL", "NO_GO", "INCONCLUSIVE"]
Result = Literal["pass", "warn", "fail", "not_measured"]
Layer = Literal["rule", "contract", "reference", "peers", "baseline"]
Confidence = Literal["high", "medium", "low"]
Category = Literal["evidence", "compute", "memory", "fabric", "topology", "storage", "burn_in", "health", "software"]

VERDICT_FORMAT = 1
EXIT_CODES: dict[VerdictWord, int] = {"GO": 0, "NO_GO": 3, "INCONCLUSIVE": 4, "CONDITIONAL": 5}


class Finding(Struct, frozen=True, kw_only=True):
    """The result of one check on one subject.

    `observed` is in `unit`; it is None where nothing was measured. Where the result is not_measured `reason` says why,
    also of a figure that is there and decides nothing (seen once, without a reference). `expected` is the
    threshold in words with its unit ("at least 0.95 of 730 TFLOPS"), `threshold` the same as a number where there is
    one. `evidence` are trial ids. `action` says what would make it pass, or how to measure it; `statement` is the
    sentence to send to the provider.
    """

    check: str
    category: Category
    subject: str
    result: Result
    required: bool
    excludable: bool = False  # whether taking out `excludes` would cure it
    excludes: str | None = None  # the node, accelerator or link to take out
    layer: Layer | None = None
    metric: str | None = None
    params: dict[str, bool | int | float | str] = {}
    observed: bool | int | float | str | None = None
    first_observed: float | None = None  # the attempt before a retest
    expected: str = ""
    threshold: float | None = None
    unit: str = ""
    confidence: Confidence = "high"
    reason: str = ""
    detail: str = ""
    evidence: tuple[str, ...] = ()
    action: str = ""
    statement: str = ""


class Coverage(Struct, frozen=True, kw_only=True):
    """How much of what is required was measured; `closed` could not be seen from the tenant's side."""

    required: int
    measured: int
    closed: int


class Interval(Struct, frozen=True, kw_only=True):
    """A figure with its 95% interval; `basis` says from what."""

    value: float | None
    low: float | None
    high: float | None
    unit: str
    basis: str
    reference: str = ""  # what a share is a share of, with its source


class Replacement(Struct, frozen=True, kw_only=True):
    """A way to make up for a failed node: how long the job waits for another, who says so, how many spare nodes are
    paid for, and what it gives. `cheapest` of the three pays the least for what gets done."""

    spare: Spare
    wait_hours: float
    source: str
    assumed: bool  # whether the figures of the first screen rest on this way
    spare_nodes: int = 0
    cheapest: bool = False
    goodput: Interval
    usd_per_pflop_day: Interval | None = None


class FindingCost(Struct, frozen=True, kw_only=True):
    """What a finding costs a month, in USD; `usd.basis` derives it in words. `checks` are those that found it; a node
    that is out, by itself or by what is taken out, has none of its own."""

    subject: str
    usd: Interval
    checks: tuple[str, ...] = ()


class Economics(Struct, frozen=True, kw_only=True):
    """What the cluster gives for its money. A figure that cannot be had is None, and `missing` says what it needs.

    `effective_throughput` is the share of the peak of all that is paid for which training makes use of. `run_*` are of
    the stated training run, `run_flops`. `spares` are the nodes beside those that train with which they run for 95 % of
    the time. `situation` is what all of it was computed from, for who changes a figure.
    """

    mfu: Interval | None = None
    goodput: Interval | None = None
    usd_per_pflop_day: Interval | None = None
    effective_throughput: Interval | None = None
    run_flops: float | None = None
    run_s: Interval | None = None
    run_usd: Interval | None = None
    replacements: tuple[Replacement, ...] = ()
    hot_spare_pays_from_s: Interval | None = None  # the wait for another node beyond which spares cost less
    spares: Interval | None = None
    checkpoint_interval_s: Interval | None = None
    longest_save_s: Interval | None = None
    findings: tuple[FindingCost, ...] = ()
    findings_usd_per_month: float | None = None
    test_node_hours: float | None = None
    test_usd: float | None = None
    situation: Situation | None = None
    missing: tuple[str, ...] = ()


class Reliability(Struct, frozen=True, kw_only=True):
    """Failures seen and what they allow to say: exact Poisson bounds at 95%, per node-day."""

    node_days: float
    failures: int
    rate_low: float | None
    rate_high: float | None
    projected_rate: float | None  # posterior mean with the stated prior; for projections only
    node_days_to_settle: float | None  # with no failure, to show the prior's rate at 95%
    sentence: str = ""


class Measured(Struct, frozen=True, kw_only=True):
    """When a node was measured: the starts of the run that it took part in. `accepted_in` is the run in which it was
    accepted, None where that is this one; `replaces` whom it stands for, and whether its hardware is another."""

    node: str
    starts: tuple[datetime, ...]
    accepted_in: str | None = None
    replaces: str | None = None
    hardware_changed: bool | None = None


class PolicyName(Struct, frozen=True, kw_only=True):
    """Which policy judged, or which file of references was given."""

    name: str
    sha256: str


class BaselineName(Struct, frozen=True, kw_only=True):
    """The earlier run that was compared with, when it began, and what else has changed since, in a few words each."""

    run_id: str
    started: datetime | None = None
    changes: tuple[str, ...] = ()


class Change(Struct, frozen=True, kw_only=True):
    """A figure beside the earlier run's. `share` is above 1 where it is better, `low` and `high` are its 95% interval.

    `told`: worse or better by more than noise, within noise; `decided` says whether the check's threshold was passed
    and a retest bore it out. `suspects` are what else changed of the hardware behind it.
    """

    check: str
    metric: str
    subject: str
    params: dict[str, bool | int | float | str] = {}
    before: float
    now: float
    unit: str
    share: float
    low: float
    high: float
    told: Literal["worse", "better", "noise"]
    decided: Result
    suspects: tuple[str, ...] = ()


class Compared(Struct, frozen=True, kw_only=True):
    """The run beside an earlier one: `figures` were compared, `noise` of them do not differ by more than noise;
    `changes` are the others, the worst first."""

    baseline: BaselineName
    figures: int
    noise: int
    not_comparable: int
    changes: tuple[Change, ...] = ()


class Verdict(Struct, frozen=True, kw_only=True):
    """The whole judgement of a run. Same evidence and policy, same bytes: no clock in it."""

    format: int = VERDICT_FORMAT
    run_id: str
    verdict: VerdictWord
    signable: bool
    sentence: str
    reasons: tuple[str, ...]  # at most five lines, the weightiest first
    not_judged: tuple[str, ...]
    confidence: str
    index: float | None
    exclude: tuple[str, ...]
    findings: tuple[Finding, ...]
    coverage: Coverage
    economics: Economics
    reliability: Reliability
    policy: PolicyName
    references: PolicyName | None = None  # the user's own file, where one was given
    measured: tuple[Measured, ...] = ()  # of each node when, where the run was started more than once
    compared: Compared | None = None  # with the earlier run that it is held against
    caveats: tuple[str, ...] = ()  # the page's first lines: simulated, no GPU cluster, not signable

    @property
    def exit_code(self) -> int:
        """The exit code of commands that end with a verdict."""
        return EXIT_CODES[self.verdict]
