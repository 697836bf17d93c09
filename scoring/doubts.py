"""Which single values a policy would fail by its own number or by a reference: they are measured again first.

A probe knows nothing of what is demanded: it is handed a function that tells of a value whether to measure it again.
"""

from collections.abc import Callable, Mapping
from pathlib import Path

from ..evidence import Fact, Metric, Params, Run, RunHeader, metric, parse_subject
from ..evidence.records import Scalar
from ..references import Accelerator, References
from .asking import asked
from .facts import Facts
from .layers import by_contract, by_reference, comparison
from .policy import policy_from_text
from .policy_model import KINDS_OF, Check

Doubts = Callable[[str, str, Params, float], bool]


def doubts_of(header: RunHeader, facts: Mapping[tuple[str, str], Scalar]) -> Doubts:
    """Whether a value (of a metric, on a subject, with params) would fail a required check of the run's policy, with
    the facts known so far. Raises PolicyError."""
    checks: dict[str, list[Check]] = {}
    for check in policy_from_text(header.policy.text, "run.json policy").checks:
        absolute = check.layers.contract is not None or check.layers.reference is not None
        if check.metric and absolute and check.severity == "required" and not check.any_attempt:
            checks.setdefault(check.metric, []).append(check)
    known = Facts(_run_of(header, facts))

    def doubted(name: str, subject: str, params: Params, value: float) -> bool:
        return any(
            _fails(check, metric(name), _kind(known, header, subject), params, value, known.references)
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
