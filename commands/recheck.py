"""recheck: the settings of an earlier run again, held against it; fit for cron."""

import contextlib
import functools
import sys
from pathlib import Path
from typing import Any

import click

from .answers import Also, console, judge, one_line_errors, own_costs, own_references, sign_measured
from .arguments import EXIT_CODES, FILE
from .run import run

_NOT_OF_A_RECHECK = frozenset(("profile", "policy", "resume", "join", "partners", "replaces", "rerun_changed"))


@click.command(epilog=EXIT_CODES, params=[one for one in run.params if one.name not in _NOT_OF_A_RECHECK])
@click.option(
    "--baseline",
    type=click.Path(file_okay=False, path_type=Path),  # only the machine that leads needs it
    required=True,
    metavar="RUN",
    help="The earlier run to hold this one against: the last that was accepted. A copy of its records travels along.",
)
@click.option(
    "--profile",
    default=None,
    metavar="NAME|FILE",
    help="What to measure. [default: recheck, an hour, after quick, recheck or acceptance; else the baseline's]",
)
@click.option(
    "--policy",
    default=None,
    metavar="NAME|FILE",
    help="What is demanded, with baseline layers. [default: recheck with its profile; else the baseline's]",
)
@click.option("--quiet", is_flag=True, help="Print nothing but errors: for cron. The exit code is the verdict.")
@click.option("--junit", type=FILE, default=None, metavar="FILE", help="Write the checks there too, for a CI system.")
@click.option(
    "--prometheus",
    type=FILE,
    default=None,
    metavar="FILE",
    help="Write the run there too, for node_exporter's textfile collector.",
)
@click.pass_context
def recheck(
    context: click.Context,
    /,
    *,
    baseline: Path,
    profile: str | None,
    policy: str | None,
    references: Path | None,
    costs: Path | None,
    dry_run: bool,
    as_json: bool,
    quiet: bool,
    junit: Path | None,
    prometheus: Path | None,
    ssh: str | None,
    remote_python: str | None,
    listen: str | None,
    join_within: float,
    allow_unlike: bool,
    bundle: str | None,
    key: Path | None,
    **wishes: Any,
) -> None:
    """Measure again what an earlier run measured, and tell what has become worse from noise.

    Whatever is not given is as in the earlier run: nodes reached by ssh, provider, price, scratch, seed. Nodes are
    matched by their hardware, not by their names; changed software, settings or hardware are named beside what fell.
    """
    with one_line_errors(), contextlib.ExitStack() as stack:
        from ..evidence import read_run
        from ..evidence.signatures import try_key
        from ..runner.command import Options, bundle_for, planned, reach_from, run_new, show_plan
        from ..runner.launched import attended, say_where, within_launcher
        from ..runner.once import alone
        from ..runner.rechecking import as_before, check_baseline, profile_of
        from ..scoring import doubts_of
        from ..scoring.policy import document_beside

        if not dry_run and attended(wishes["hosts"], join_within):
            return
        if key is not None:
            try_key(key)
        before = read_run(baseline)
        check_baseline(before)
        chosen = profile_of(profile, before.header)
        demanded = document_beside(policy, chosen.name, before.header.policy)
        given = context.get_parameter_source
        stated = {name for name in context.params if given(name) == click.core.ParameterSource.COMMANDLINE}
        asked = as_before(before.header, wishes, stated)
        stack.enter_context(contextlib.nullcontext() if dry_run else alone(str(baseline.resolve())))
        carried = stack.enter_context(bundle_for(None if dry_run else bundle, asked["hosts"], None))
        reach = reach_from(
            ssh=ssh,
            remote_python=remote_python,
            listen=listen,
            join_within=join_within,
            allow_unlike=allow_unlike,
            bundle=carried,
        )
        reach = reach if dry_run else within_launcher(reach, asked["hosts"])
        options = Options(
            profile=chosen,
            policy=demanded,
            command=("hwlottery", *sys.argv[1:]),
            reach=reach,
            doubts=functools.partial(doubts_of, baseline=before),
            references=own_references(references) or before.header.references,
            costs=own_costs(costs) or before.header.costs,
            baseline=before,
            **asked,
        )
        shown = console(as_json, quiet=quiet)
        if dry_run:
            show_plan(planned(options), shown, as_json=as_json)
            return
        out = run_new(options, shown)
        say_where(reach, out, shown)
        if key is not None:
            sign_measured(out, key)
    judge(out, None, as_json=as_json, with_report=True, quiet=quiet, also=Also(junit=junit, prometheus=prometheus))
