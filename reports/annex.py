"""A policy as an annex to a contract, on one page: what is measured, how, what must come out, and what follows if not.

For lawyers and providers: plain words, the policy's own numbers, and the hash of the text that decides.
"""

from collections.abc import Iterable, Iterator, Sequence
from importlib import resources

from jinja2 import DictLoader, Environment, StrictUndefined
from markupsafe import Markup
from msgspec import Struct

from ..evidence import TIERS
from ..scoring import Policy
from ..scoring.policy_model import Check
from ..scoring.policy_terms import Terms
from ..scoring.words import counted, percent, three_digits
from .annex_rows import Methods, Row, needed_nowhere, row, tiers_of, what
from .markdown import rendered
from .page import content_policy, shown


class Profile(Struct, frozen=True, kw_only=True):
    """By which profile it is measured: its name and the SHA-256 of its text."""

    name: str
    sha256: str


class Annex(Struct, frozen=True, kw_only=True):
    """What the annex says. `faults` are promises that bear no exception, `recorded` is what only has to be measured,
    `alike` are promises of a device among its like. `tiers`: who may see how much, and what that changes."""

    title: str
    name: str
    sha256: str
    version: str
    purpose: str
    terms: tuple[tuple[str, str], ...]
    rows: tuple[Row, ...]
    profile: Profile | None
    faults: str
    tiers: tuple[str, ...]
    recorded: str
    alike: str
    rules: tuple[str, ...]
    notes: tuple[str, ...]
    signers: tuple[str, str]


def annex(policy: Policy, methods: Methods, version: str, profile: Profile | None = None) -> Annex:
    """The annex of a policy; `methods` are those of this hwlottery, whose `version` is named, by the `profile`."""
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
        profile=profile,
        rows=tuple(row(check, policy.terms, methods) for check in numbers),
        faults=_listed(check for check in rest if not _only_there(check) and not needed_nowhere(check)),
        tiers=tuple(_tiers(counted_in)),
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
    first, *others = dict.fromkeys(map(what, checks)) or ("",)
    return "; ".join([first, *(name[:1].lower() + name[1:] for name in others)])


def _alike(checks: Sequence[Check]) -> str:
    """Promises of a device among its like, by the loss that is borne."""
    by_effect: dict[float, list[str]] = {}
    for check in checks:
        assert check.layers.peers is not None
        by_effect.setdefault(check.layers.peers.effect, []).append(what(check).lower())
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


def _tiers(checks: Sequence[Check]) -> Iterator[str]:
    """What must be shown from where: some of it may be closed to a tenant."""
    somewhere = [check for check in checks if check.tiers]
    partly = [check for check in somewhere if tiers_of(check)]
    rest = "everything else here" if partly or len(somewhere) < len(checks) else "everything here"
    yield f"Required on every access tier ({', '.join(TIERS)}): {rest}."
    by_tiers: dict[str, list[Check]] = {}
    for check in partly:
        by_tiers.setdefault(tiers_of(check), []).append(check)
    for tiers, found in by_tiers.items():
        yield f"Required on {tiers} alone, and judged elsewhere where it is seen: {_listed(found)}."
    unneeded = [check for check in checks if needed_nowhere(check)]
    if unneeded:
        yield (
            f"Required on none, and judged where it is seen: {_listed(unneeded)}. What is seen and falls short fails; "
            "what is closed to the tenant is reported as not seen, and stands in the way of no acceptance."
        )


def _rules(policy: Policy) -> Iterator[str]:
    most = percent(policy.exclude_at_most)
    yield (
        "Accepted (GO) is a cluster on which all that is required was measured and passed, and nothing that was seen "
        f"failed; accepted without the nodes that are named (CONDITIONAL) one of whose nodes at most {most} (of four "
        "or more at least one) have to be taken out, and which passes without them. What fails otherwise is not "
        "accepted (NO-GO)."
    )
    yield (
        "What is required and was not measured has not passed: nothing is signed, and the test is repeated until it is "
        "(INCONCLUSIVE). A missing, unreadable or impossible value counts as not measured."
    )
    yield (
        "A speed or time that falls short, or stands out among its like, is measured again under the same conditions; "
        "the last measurement counts, and measurements that disagree are reported. A wrong result counts even once. "
        "What several nodes or accelerators do together is judged where there are as many."
    )
    only_warn = sum(check.severity == "warn" for check in policy.checks)
    if only_warn:
        yield f"Beside these the policy has {counted(only_warn, 'check')} that can only warn: no verdict rests on that."
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
