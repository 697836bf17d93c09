"""annex: a policy as an annex to the contract."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from .annex_samples import samples_told
from .answers import one_line_errors, write
from .arguments import FILE

if TYPE_CHECKING:
    from ..probes.profiles import Profile
    from ..reports.annex_rows import Method
    from ..scoring import Policy


@click.command()
@click.option("--policy", required=True, metavar="NAME|FILE", help="The policy: a name, or your own YAML file.")
@click.option(
    "--profile",
    default=None,
    metavar="NAME|FILE",
    help="By which profile it is measured. [default: the policy's namesake, or that of a policy which it extends]",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["html", "md"]),
    default="html",
    show_default=True,
    help="html: one page that prints on one sheet; md: Markdown.",
)
@click.option("-o", "--output", type=FILE, default=None, help="Where to write. [default: stdout]")
def annex(policy: str, profile: str | None, form: Literal["html", "md"], output: Path | None) -> None:
    """Write a policy as a contract annex: what is measured, how, the threshold, samples, retest and days to cure.

    `annex --policy contract` shows the example; copy it (the file it comes from is scoring/policies/contract.yaml),
    put in your numbers, and give your own file.
    """
    with one_line_errors():
        from .. import __version__
        from ..reports.annex import Profile as Measuring
        from ..reports.annex import annex as annex_of
        from ..reports.annex import as_html, as_markdown
        from ..scoring import load_policy

        chosen = load_policy(policy)
        by = _profile_of(chosen, profile)
        named = Measuring(name=by.name, sha256=by.sha256) if by is not None else None
        found = annex_of(chosen, dict(_methods(by)), __version__, named)
        text = as_html(found) if form == "html" else as_markdown(found)
        if output is None:
            click.echo(text, nl=False)
        else:
            write(output, text, inside=output)


def _profile_of(policy: "Policy", given: str | None) -> "Profile | None":
    """The profile that was given, else the first that is called as the policy or as one that it extends."""
    from ..probes.profiles import load_profile, profile_names
    from ..scoring.policy import lineage

    called = given or next((name for name in lineage(policy) if name in profile_names()), None)
    return load_profile(called) if called else None


def _methods(profile: "Profile | None") -> "Iterator[tuple[tuple[str, str], Method]]":
    """How each metric is measured on each kind of subject: probe and version of its method; and each probe by name."""
    from ..probes import PROBES
    from ..probes.protocol import would_measure
    from ..reports.annex_rows import Method

    for probe in PROBES:
        named, again = f"{probe.name} {probe.method}", getattr(probe, "retests", ())
        yield (probe.name, ""), Method(name=named, samples=samples_told(profile, probe.name))
        for name in probe.metrics:
            for kind in would_measure(probe, name, 2):
                yield (
                    (name, kind),
                    Method(
                        name=named,
                        samples=samples_told(profile, probe.name, name),
                        retested=name in again and kind != "cluster",
                    ),
                )
