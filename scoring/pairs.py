"""Pairs of nodes as a run measured them, brought to the min-model: observations in, blame out (fabric/)."""

import math
from collections.abc import Iterator

from msgspec import Struct

from ..evidence import Run
from ..fabric import (
    Blame,
    LevelName,
    Observation,
    Pair,
    Thresholds,
    blame,
    domains_of,
    level_of,
    levels_of,
    pair_of,
)
from .asking import asked
from .derived import Figures
from .facts import Facts
from .joined import epoch_of
from .policy import policy_from_text
from .policy_layers import Peers
from .policy_model import Check, RuleName
from .policy_text import PolicyError
from .scope import nodes_of
from .statistics import error_of_median
from .values import Value, Values

BUSBW = "all_reduce.busbw"
_RULE: RuleName = "pairs.nodes"


class PairFigures(Struct, frozen=True, kw_only=True):
    """What a run says of its pairs at one message size, the largest.

    `subjects` and `trials` (the last first) are of each pair; `missing` says of a pair why its last attempt has no
    value. `blame` is None where no pair has a value. `seen` are the values it was made from, GB/s.
    """

    bytes: int
    blame: Blame | None
    seen: tuple[Observation, ...]
    subjects: dict[Pair, str]
    trials: dict[Pair, tuple[str, ...]]
    missing: dict[Pair, str]

    def ceiling(self) -> float:
        """GB/s of good pairs side by side; NaN without any."""
        return self.blame.levels.ceiling if self.blame else math.nan

    def evidence(self, pairs: Iterator[Pair] | tuple[Pair, ...]) -> tuple[str, ...]:
        """The trials of these pairs, each once."""
        return tuple(dict.fromkeys(trial for pair in pairs for trial in self.trials.get(pair, ())))


def nvlink_domains(figures: Figures) -> dict[str, str]:
    """Each promised node that shares its NVLink domain with another, with the domain's name."""
    said: dict[str, list[str | None]] = {}
    for node in figures.header.promised:
        told = [figures.facts.get(f"{node.node}/{rank}", "accelerator.nvlink_domain") for rank in node.ranks]
        said[node.node] = [one if isinstance(one, str) and one else None for one in told]
    return domains_of(said)


def pair_levels(figures: Figures) -> list[LevelName]:
    """The levels of the fabric on which pairs were planned or recorded; one without a name where there are no
    domains."""
    domains = nvlink_domains(figures)
    return sorted({level_of(pair, domains) for pair in pair_subjects(figures, BUSBW)}) or [""]


def pair_figures(figures: Figures, check: Check, epoch: int = 0, level: LevelName = "") -> PairFigures:
    """The bandwidths that a check asks for of the pairs on one level, and what the min-model says of them.

    Of one epoch (joined.epoch_of): what pairs did on another day, under another load, is no measure for these.
    """
    thresholds = thresholds_of(check.layers.peers)
    key = ("pairs", repr(check.where), thresholds, epoch, level)
    if key not in figures.shared:
        figures.shared[key] = _pair_figures(figures, check, thresholds, epoch, level)
    found: PairFigures = figures.shared[key]
    return found


def _pair_figures(figures: Figures, check: Check, thresholds: Thresholds, epoch: int, level: LevelName) -> PairFigures:
    domains = nvlink_domains(figures)
    asked_for = _values(figures, check, BUSBW)
    values = {pair: found for pair, found in asked_for.items() if level_of(pair, domains) == level}
    if figures.header.joins:
        values = {pair: [one for one in found if _epoch(figures, one) == epoch] for pair, found in values.items()}
        values = {pair: found for pair, found in values.items() if found}
    size = max((int(value.params["bytes"]) for found in values.values() for value in found), default=0)
    at_size = {pair: [v for v in found if v.params["bytes"] == size] for pair, found in values.items()}
    seen = [one for pair, found in at_size.items() for value in found for one in observations_of(pair, value)]
    levels = levels_of(seen, thresholds)
    return PairFigures(
        bytes=size,
        blame=blame(levels) if levels else None,
        seen=tuple(seen),
        subjects=pair_subjects(figures, BUSBW),
        trials={pair: tuple(t for value in found for t in reversed(value.trials)) for pair, found in at_size.items()},
        missing={pair: why for pair, found in at_size.items() if (why := why_missing(found)) is not None},
    )


def pairs_of(run: Run) -> PairFigures:
    """The same of a run alone, of what was measured last, by the run's own policy; by the rule's defaults where that
    policy cannot be read or asks nothing of pairs. Where there are NVLink domains, of the pairs between them."""
    figures = Figures(run.header, Values(run, only=BUSBW), Facts(run))
    levels = pair_levels(figures)
    level: LevelName = "between" if "between" in levels else levels[0]
    return pair_figures(figures, _check_of(run), len(run.header.joins), level)


def _check_of(run: Run) -> Check:
    try:
        checks = policy_from_text(run.header.policy.text, "run.json policy").checks
    except PolicyError:
        checks = ()
    default = Check(check=_RULE, rule=_RULE, each="node", category="fabric")
    return next((check for check in checks if check.rule == _RULE), default)


def thresholds_of(peers: Peers | None) -> Thresholds:
    """The smallest effect that matters and the sigmas that a check asks for."""
    return Thresholds() if peers is None else Thresholds(effect=min(peers.effect, 0.49), sigmas=peers.sigmas)


def pair_subjects(figures: Figures, metric: str) -> dict[Pair, str]:
    """Each pair of promised nodes on which a metric was planned or recorded, with its subject as written."""
    found: dict[Pair, str] = {}
    for subject in figures.measured.subjects(metric):
        nodes = nodes_of(subject) if "/" not in subject else ()
        if len(nodes) == 2 and nodes[0] != nodes[1] and all(figures.node(node) for node in nodes):
            found[pair_of(*nodes)] = subject
    return found


def _values(figures: Figures, check: Check, metric: str) -> dict[Pair, list[Value]]:
    found = {}
    for pair, subject in pair_subjects(figures, metric).items():
        values = [*figures.of(metric, subject), *figures.of(metric, "~".join(reversed(subject.split("~"))))]
        found[pair] = [one for one in values if asked(one.params, check.where) and _has_size(one)]
    return found


def _epoch(figures: Figures, value: Value) -> int:
    plans = (figures.measured.plans.get(trial) for trial in value.trials)
    return epoch_of(figures.header, min((plan.number or 0 for plan in plans if plan), default=0))


def _has_size(value: Value) -> bool:
    size = value.params.get("bytes")
    return isinstance(size, int) and not isinstance(size, bool) and size > 0


def observations_of(pair: Pair, value: Value) -> Iterator[Observation]:
    """One for each attempt: the first was the tournament's, beside other pairs; later ones ran alone."""
    for attempt in value.by_attempt:
        if math.isfinite(attempt.value) and attempt.value > 0:
            error = error_of_median(attempt.noise or 0.0, attempt.samples)
            yield Observation(pair=pair, value=attempt.value, alone=attempt.number > 1, error=error)


def why_missing(found: list[Value]) -> str | None:
    """Why a pair's last attempt has no value; None where it has."""
    if not found:
        return "no value at this size"
    gone = next((value for value in found if value.value is None or not value.value > 0), None)
    return (gone.detail or gone.reason or "no bandwidth") if gone else None
