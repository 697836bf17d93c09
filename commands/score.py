"""score: judge a run directory again."""

from pathlib import Path

import click

from .answers import Given, judge
from .arguments import COSTS, EXIT_CODES, PROVIDER_RECORD, REFERENCES, RUN, RUN_FLOPS


@click.command(epilog=EXIT_CODES)
@click.argument("path", metavar="RUN", type=RUN)
@click.option(
    "--policy",
    default=None,
    metavar="NAME|FILE",
    help="Judge by another policy than the run's own; verdict.json then stays as it is.",
)
@REFERENCES
@click.option(
    "--baseline",
    type=RUN,
    default=None,
    metavar="RUN",
    help="Hold it against another earlier run than the one it carries; verdict.json then stays as it is.",
)
@COSTS
@RUN_FLOPS
@PROVIDER_RECORD
@click.option("--json", "as_json", is_flag=True, help="Print the verdict as one JSON document on stdout.")
def score(
    *,
    path: Path,
    policy: str | None,
    references: Path | None,
    costs: Path | None,
    run_flops: float | None,
    baseline: Path | None,
    provider_record: Path | None,
    as_json: bool,
) -> None:
    """Judge a run directory again, on any machine. Exits with the verdict."""
    given = Given(references=references, costs=costs, run_flops=run_flops, baseline=baseline)
    judge(path, policy, given, as_json=as_json, with_report=False, provider_record=provider_record)
