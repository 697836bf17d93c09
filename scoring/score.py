"""Scoring a run: evidence and policy in, verdict out. No clock, no randomness: same evidence, same bytes."""

import contextlib
import gc
import hashlib
from collections.abc import Iterator

import msgspec

from ..evidence import Problem, Run
from .actions import with_advice
from .composite import index
from .decision import coverage, decide, remaining
from .derived import Figures
from .economics import economics, rounded
from .facts import Facts
from .judging import Judge
from .policy import Policy, policy_from_text
from .reliability import reliability
from .rules import Happenings
from .sentences import caveats, confidence, not_judged, reasons, sentence
from .values import Values
from .verdict import Economics, PolicyName, Verdict

SIGNABLE_WORDS = ("GO", "CONDITIONAL")


def score_run(run: Run, policy: Policy | None = None, baseline: Run | None = None) -> Verdict:
    """Judge a run by a policy: the one it carries unless another is given. Raises PolicyError for one that cannot be
    used. `baseline` is an accepted run to compare with."""
    with collector_paused():
        return _judge(with_altered_policy_noticed(run), policy, baseline)


@contextlib.contextmanager
def collector_paused() -> Iterator[None]:
    """Without the cyclic garbage collector: half a million small objects without cycles would be walked over and over,
    which doubles the time of a large run."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _judge(run: Run, policy: Policy | None, baseline: Run | None) -> Verdict:
    if policy is None:
        policy = policy_from_text(run.header.policy.text, "run.json policy")
    figures = _figures(run)
    judge = Judge(figures, Happenings(run), _figures(baseline) if baseline else None)
    findings = tuple(with_advice(finding, check) for check in policy.checks for finding in judge.findings(check))
    decision = decide(findings, run.header, policy.exclude_at_most)
    covered, failures = coverage(findings), reliability(run)
    return Verdict(
        run_id=run.header.run_id,
        verdict=decision.word,
        signable=decision.word in SIGNABLE_WORDS and policy.signable and not run.header.simulated,
        sentence=sentence(decision, run.header, policy, covered),
        reasons=reasons(decision, remaining(findings, decision)),
        not_judged=not_judged(remaining(findings, decision), policy, with_baseline=baseline is not None),
        confidence=confidence(findings, failures),
        index=index(policy.checks, judge.shares, decision.excluded),
        exclude=decision.excluded,
        findings=findings,
        coverage=covered,
        economics=_rounded(economics(run, figures, decision.excluded)),
        reliability=failures,
        policy=PolicyName(name=policy.name, sha256=policy.sha256),
        caveats=caveats(run.header, policy),
    )


def verdict_json(verdict: Verdict) -> bytes:
    """The content of verdict.json."""
    return msgspec.json.format(msgspec.json.encode(verdict), indent=1) + b"\n"


def read_verdict(content: bytes) -> Verdict:
    """A verdict.json read back. Raises msgspec.MsgspecError where it is none."""
    return msgspec.json.decode(content, type=Verdict)


def with_altered_policy_noticed(run: Run) -> Run:
    """The run, with a problem more where its policy's text is not the one whose SHA-256 it names."""
    document = run.header.policy
    if hashlib.sha256(document.text.encode()).hexdigest() == document.sha256:
        return run
    problem = Problem(kind="checksum", place="run.json", detail="the policy's text is not the one of its SHA-256")
    return msgspec.structs.replace(run, problems=[*run.problems, problem])


def _figures(run: Run) -> Figures:
    return Figures(run.header, Values(run), Facts(run))


def _rounded(money: Economics) -> Economics:
    return msgspec.structs.replace(
        money,
        mfu=rounded(money.mfu),
        goodput=rounded(money.goodput),
        usd_per_pflop_day=rounded(money.usd_per_pflop_day),
    )
