"""A policy as an annex to a contract, on one page: what is measured, how, what must come out, and what follows if not.

For lawyers and providers: plain words, the policy's own numbers, and the hash of the text that decides.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import resources

from jinja2 import DictLoader, Environment, StrictUndefined
from markupsafe import Markup
from msgspec import Struct

from ..evidence import metric
from ..scoring import Policy
from ..scoring.fact_checks import unit_of
from ..scoring.policy_model import KINDS_OF, Check
from ..scoring.policy_terms import Terms
from ..scoring.words import counted, figure, params_in_words, percent, three_digits
from .annex_words import PLAIN
from .markdown import rendered
from .page import content_policy, shown


class Method(Struct, frozen=True, kw_only=True):
    """How something is measured: probe and version, and whether what is bad is measured again."""

    name: str
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
_BY_RECORD = Method(name="the record")
_BY_SENSORS = Method(name="sensors")


class Row(Struct, frozen=True, kw_only=True):
    """One promise: what, on whom, the threshold, and how it is measured."""

    what: str
    each: str
    threshold: str
    samples: str
    method: str
    retest: str
    days_to_cure: str


class Annex(Struct, frozen=True, kw_only=True):
    """What the annex says. `faults` are promises that bear no exception, `recorded` is what only has to be measured,
    `alike` are promises of a device among its like."""

    title: str
    name: str
    sha256: str
    version: str
    purpose: str
    terms: tuple[tuple[str, str], ...]
    rows: tuple[Row, ...]
    faults: str
    recorded: str
    alike: str
    rules: tuple[str, ...]
    notes: tuple[str, ...]
    signers: tuple[str, str]


def annex(policy: Policy, methods: Methods, version: str) -> Annex:
    """The annex of a policy; `methods` are those of this hwlottery, whose `version` is named."""
    counted_in = [check for check in policy.checks if check.severity == "required"]
    numbers = [check for check in counted_in if _has_number(check)]
    rest = [check for check in counted_in if not _has_number(check) and not _only_among_peers(check)]
    alike = [check for check in counted_in if _only_among_peers(check)]
    return Annex(
        title="Annex: acceptance by measurement",
        name=policy.name,
        sha256=policy.sha256,
        version=version,
        purpose=policy.purpose,
        terms=tuple(_terms(policy.terms)),
        rows=tuple(_row(check, policy.terms, methods) for check in numbers),
        faults=_listed(check for check in rest if not _only_there(check)),
        recorded=_listed(check for check in rest if _only_there(check)),
        alike=_alike(alike),
        rules=tuple(_rules(policy)),
        notes=policy.terms.notes,
        signers=(policy.terms.buyer or "Buyer", policy.terms.provider or "Provider"),
    )


def _has_number(check: Check) -> bool:
    """Whether a figure stands there: the buyer's, or a share of a reference. "At most 0" is a fault, not a figure."""
    contract, reference = check.layers.contract, check.layers.reference
    return reference is not None or (contract is not None and contract.at_most != 0)


def _only_among_peers(check: Check) -> bool:
    return check.layers.peers is not None and not _has_number(check)


def _only_there(check: Check) -> bool:
    """Whether it asks for a value, whatever that is."""
    return check.metric is not None and not check.layers.given


def _listed(checks: Iterable[Check]) -> str:
    """In one sentence: 'The record is whole; each node answers'."""
    first, *others = dict.fromkeys(map(_what, checks)) or ("",)
    return "; ".join([first, *(name[:1].lower() + name[1:] for name in others)])


def _what(check: Check) -> str:
    name = check.metric or check.rule or check.fact or ""
    return PLAIN.get(name) or (metric(name).meaning.split(".")[0] if check.metric else check.check)


def _row(check: Check, terms: Terms, methods: Methods) -> Row:
    days = check.days_to_cure or terms.days_to_cure
    method = _method(check, methods)
    where = params_in_words({key: _asked(wanted) for key, wanted in check.where.items()})
    return Row(
        what=_what(check) + (f" ({where})" if where else ""),
        each=_EACH[check.each],
        threshold=_threshold(check),
        samples=f"{check.samples_at_least:,}" if check.samples_at_least else "",
        method=method.name,
        retest="once" if method.retested and not check.any_attempt else "",
        days_to_cure=three_digits(days) if days else "as agreed",
    )


def _asked(wanted: object) -> str | int | float:
    if isinstance(wanted, str | int | float):
        return wanted
    return " and ".join(map(str, wanted)) if isinstance(wanted, tuple) else "largest sizes"


def _threshold(check: Check) -> str:
    """The buyer's number where there is one, for it decides; else the share of a reference."""
    contract, reference = check.layers.contract, check.layers.reference
    if contract is not None:
        unit = unit_of(check) or _UNIT_OF_RULE.get(check.rule or "", "")
        words = (("at least", contract.at_least), ("at most", contract.at_most), ("exactly", contract.equals))
        hard = [f"{word} {figure(bound, unit)}" for word, bound in words if bound is not None]
        soft = (("at least", contract.warn_at_least), ("at most", contract.warn_at_most))
        noted = [f"{word} {figure(bound, unit)}" for word, bound in soft if bound is not None]
        return ", ".join(hard) or "noted unless " + ", ".join(noted)
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


def _alike(checks: Sequence[Check]) -> str:
    """Promises of a device among its like, by the loss that is borne."""
    by_effect: dict[float, list[str]] = {}
    for check in checks:
        assert check.layers.peers is not None
        by_effect.setdefault(check.layers.peers.effect, []).append(_what(check).lower())
    parts = [f"{percent(effect)} in {', '.join(dict.fromkeys(found))}" for effect, found in sorted(by_effect.items())]
    return "; ".join(parts)


def _terms(terms: Terms) -> Iterator[tuple[str, str]]:
    if terms.nodes is not None:
        with_what = f" of {counted(terms.accelerators_per_node, 'accelerator')}" if terms.accelerators_per_node else ""
        kind = f" ({terms.accelerator})" if terms.accelerator else ""
        yield "Delivered", f"{counted(terms.nodes, 'node')}{with_what}{kind}"
    if terms.delivery is not None:
        yield "By", terms.delivery.isoformat()
    if terms.replacement_hours is not None:
        yield "A node that is taken out is replaced within", f"{three_digits(terms.replacement_hours)} hours"
    if terms.days_to_cure is not None:
        yield "What falls short is mended within", f"{three_digits(terms.days_to_cure)} days"


def _rules(policy: Policy) -> Iterator[str]:
    most = percent(policy.exclude_at_most)
    yield (
        "Accepted (GO) is what passes all of this; accepted without the nodes that are named (CONDITIONAL) a cluster "
        f"of whose nodes at most {most} would have to be taken out. Anything else is not accepted (NO-GO)."
    )
    yield (
        "What was not measured has not passed: the test is then repeated until it is (INCONCLUSIVE). A missing, "
        "unreadable or impossible value counts as not measured."
    )
    yield (
        "A speed or time that falls short, or stands out among its like, is measured again under the same conditions; "
        "the last measurement counts, and measurements that disagree are reported. A wrong result counts even once."
    )
    if not policy.signable:
        yield "Results by this policy are not for signing."


def as_html(found: Annex) -> str:
    """The annex as one self-contained page, made for one sheet of A4."""
    style = _asset("annex.css")
    environment = Environment(
        loader=DictLoader({_PAGE: _asset(_PAGE)}),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(_PAGE).render(
        annex=found,
        style=Markup(style),  # noqa: S704  # our own file
        policy=content_policy(style, ""),
    )


_PAGE = "annex.html.j2"


def as_markdown(found: Annex) -> str:
    """The annex as Markdown, for a contract that is written in it."""
    return rendered("annex.md.j2", annex=found)


def _asset(name: str) -> str:
    return resources.files(__package__).joinpath("templates", name).read_text(encoding="utf-8")
