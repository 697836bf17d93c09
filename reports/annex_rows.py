"""The promises of an annex, row by row: what, on whom, the threshold, the samples, and how it is measured."""

from collections.abc import Mapping

from msgspec import Struct

from ..evidence import TIERS, metric
from ..scoring.fact_checks import unit_of
from ..scoring.policy_model import KINDS_OF, Check
from ..scoring.policy_terms import Terms
from ..scoring.statistics import node_days_to_show
from ..scoring.words import figure, params_in_words, percent, three_digits
from .annex_words import PLAIN


class Method(Struct, frozen=True, kw_only=True):
    """How something is measured: probe and version, how many samples a profile takes (in words, "" where there is no
    profile), and whether what is bad is measured again."""

    name: str
    samples: str = ""
    retested: bool = False


Methods = Mapping[tuple[str, str], Method]  # by metric and kind of subject; and by the probe's name and ""

_EACH = {
    "cluster": "the cluster",
    "node": "each node",
    "accelerator": "each accelerator",
    "numa": "each memory domain",
    "filesystem": "each file system",
    "pair": "each pair of nodes",
}
_BY_RECORD = Method(name="the record", samples="the whole run")
_BY_SENSORS = Method(name="sensors", samples="the whole run")


class Row(Struct, frozen=True, kw_only=True):
    """One promise: what, on whom, the threshold, and how it is measured."""

    what: str
    each: str
    threshold: str
    samples: str
    method: str
    retest: str
    days_to_cure: str


def row(check: Check, terms: Terms, methods: Methods) -> Row:
    days = check.days_to_cure or terms.days_to_cure
    method = _method(check, methods)
    where = params_in_words({key: _asked(wanted) for key, wanted in check.where.items()})
    return Row(
        what=what(check) + (f" ({where})" if where else ""),
        each=_EACH[check.each],
        threshold=_threshold(check),
        samples=_samples(check, method),
        method=method.name,
        retest="once" if method.retested and not check.any_attempt else "",
        days_to_cure=three_digits(days) if days else "as agreed",
    )


def _asked(wanted: object) -> str | int | float:
    if isinstance(wanted, str | int | float):
        return wanted
    return " and ".join(map(str, wanted)) if isinstance(wanted, tuple) else "largest sizes"


def _samples(check: Check, method: Method) -> str:
    if check.rule == "reliability.mtbf" and (promised := _promised(check)):
        return f"{three_digits(round(node_days_to_show(1 / promised, 0)))} node-days without a failure would prove it"
    least = f"at least {check.samples_at_least:,}" if check.samples_at_least else ""
    return least or method.samples


def needed_nowhere(check: Check) -> bool:
    """Whether no access tier has to show it: a fault that is seen counts, and nobody has to look for one."""
    return not check.tiers


def tiers_of(check: Check) -> str:
    """The access tiers that must show it, where they are not all."""
    return "" if set(check.tiers) == set(TIERS) else ", ".join(tier for tier in TIERS if tier in check.tiers)


def _promised(check: Check) -> float | None:
    return check.layers.contract.at_least if check.layers.contract else None


def _threshold(check: Check) -> str:
    """The buyer's number where there is one, for it decides; else the share of a reference."""
    contract, reference = check.layers.contract, check.layers.reference
    if contract is not None:
        unit = unit_of(check) or _UNIT_OF_RULE.get(check.rule or "", "")
        words = (("at least", contract.at_least), ("at most", contract.at_most), ("exactly", contract.equals))
        hard = [f"{word} {figure(bound, unit)}" for word, bound in words if bound is not None]
        soft = (("at least", contract.warn_at_least), ("at most", contract.warn_at_most))
        noted = [f"{word} {figure(bound, unit)}" for word, bound in soft if bound is not None]
        wanted = ", ".join(hard) or "noted unless " + ", ".join(noted)
        if check.rule == "reliability.mtbf":
            return f"{wanted} between failures; " + (
                "fails only where fewer are shown" if needed_nowhere(check) else "shown, or not accepted"
            )
        return f"{wanted}, where it is seen" if needed_nowhere(check) else wanted
    assert reference is not None
    share = reference.fail or reference.warn or 0.0
    published = "peak" if reference.of == "peak" else "floor" if reference.of == "floor" else "figure"
    return f"at least {'' if share == 1 else percent(share) + ' of '}the published {published}"


_UNIT_OF_RULE = {"run.length": "h", "rails.wire": "share", "node.count": "nodes", "reliability.mtbf": "node-days"}


def _method(check: Check, methods: Methods) -> Method:
    """Probe and version; of a derived figure those of the probe that its name begins with."""
    name = check.metric or check.rule or ""
    kinds = (methods.get((name, kind)) for kind in KINDS_OF[check.each])
    found = next((method for method in kinds if method), None) or methods.get((name.split(".")[0], ""))
    return found or (_BY_SENSORS if check.metric else _METHOD_OF_RULE.get(name, _BY_RECORD))


_METHOD_OF_RULE = {"reliability.mtbf": Method(name="Poisson bounds, 95 %")}


def what(check: Check) -> str:
    name = check.metric or check.rule or check.fact or ""
    return PLAIN.get(name) or (metric(name).meaning.split(".")[0] if check.metric else check.check)
