"""Which single values a policy would fail by its own number or by a reference: they are measured again first.

A probe knows nothing of what is demanded: it is handed a function that tells of a value whether to measure it again.
"""

from collections.abc import Callable, Mapping
from pathlib import Path

from ..evidence import Fact, Metric, Params, Run, RunHeader, metric, parse_subject
from ..evidence.records import Scalar
from ..references import Accelerator, References
from .asking import asked
from .baselines import BaselineFigures
from .derived import Figures
from .facts import Facts
from .joined import standing
from .layers import by_contract, by_reference, comparison, share_of
from .policy import policy_from_text
from .policy_model import KINDS_OF, Check
from .scope import Target, nodes_of
from .values import Values

Doubts = Callable[[str, str, Params, float], bool]


def doubts_of(
    header: RunHeader, facts: Mapping[tuple[str, str], Scalar], baseline: Run | None = None
) -> Doubts:  # fmt: skip
    """Whether a value (of a metric, on a subject, with params) would fail a required check of the run's policy, with
    the facts known so far, and beside the earlier run that it is held against. Raises PolicyError."""
    checks: dict[str, list[Check]] = {}
    for check in policy_from_text(header.policy.text, "run.json policy").checks:
        absolute = check.layers.contract is not None or check.layers.reference is not None
        absolute |= check.layers.baseline is not None and baseline is not None
        if check.metric and absolute and check.severity == "required" and not check.any_attempt:
            checks.setdefault(check.metric, []).append(check)
    run = _run_of(header, facts)
    known = Facts(run)
    earlier = _earlier(run, baseline)

    def doubted(name: str, subject: str, params: Params, value: float) -> bool:
        return any(
            _fails(check, metric(name), _kind(known, header, subject), params, value, known.references)
            or (earlier is not None and _fell(check, metric(name), subject, params, value, earlier))
            for check in checks.get(name, [])
            if _concerns(check, header, subject) and asked(params, check.where)
        )

    return doubted


def _concerns(check: Check, header: RunHeader, subject: str) -> bool:
    of_its_kind = parse_subject(subject).kind in KINDS_OF[check.each]
    return of_its_kind and (check.device is None or check.device == header.device)


def _kind(known: Facts, header: RunHeader, subject: str) -> Accelerator | None:
    """The kind of an accelerator, or that of all accelerators of its node."""
    node = subject.partition("/")[0]
    promised = next((one for one in header.promised if one.node == node), None)
    if promised is None:
        return None
    return known.accelerator(subject) if subject != node else known.accelerator_of_node(promised)


def _fails(  # noqa: PLR0917  # a value with all that it is compared by
    check: Check, described: Metric, kind: Accelerator | None, params: Params, value: float, references: References
) -> bool:
    layers = check.layers
    if layers.contract is not None and by_contract(value, layers.contract, described.unit).result == "fail":
        return True
    if layers.reference is None:
        return False
    against = comparison(layers.reference, kind, described, params, references)
    return by_reference(value, against, described).result == "fail"


def _earlier(run: Run, baseline: Run | None) -> BaselineFigures | None:
    if baseline is None:
        return None
    now, before = (Figures(one.header, Values(one), Facts(one)) for one in (run, standing(baseline)))
    return BaselineFigures(now, before)


def _fell(  # noqa: PLR0917  # a value with all that it is compared by
    check: Check, described: Metric, subject: str, params: Params, value: float, earlier: BaselineFigures
) -> bool:
    """Whether it is below the share of the earlier value that the check demands."""
    layer = check.layers.baseline
    if layer is None or layer.fail is None:
        return False
    before = earlier.value_of(described, Target(subject=subject, nodes=nodes_of(subject)), params)
    if before is None or before.value is None or before.value <= 0 or value <= 0:
        return False
    return not share_of(value, before.value, described) >= layer.fail


def _run_of(header: RunHeader, facts: Mapping[tuple[str, str], Scalar]) -> Run:
    """A run that has come as far as its facts."""
    return Run(
        path=Path(),
        header=header,
        plans=[],
        facts=[Fact(subject=subject, key=key, value=value) for (subject, key), value in facts.items()],
        measurements=[],
        not_measured=[],
        events=[],
        problems=[],
        last_number=0,
        line_counts={},
    )
