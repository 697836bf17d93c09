"""Scoring a run: evidence and policy in, verdict out. No clock, no randomness: same evidence, same bytes."""

from itertools import islice

import msgspec

from ..evidence import Run
from ..evidence.reading import collector_paused
from .actions import with_advice
from .composite import index
from .decision import coverage, decide, remaining
from .derived import Figures
from .economics import economics
from .facts import Facts
from .happenings import Happenings
from .joined import measured_when, standing
from .judging import Judge
from .over_the_rest import over_the_rest
from .policy import Policy, policy_from_text
from .policy_text import PolicyError
from .reliability import observed_seconds, reliability
from .sentences import caveats, confidence, not_judged, reasons, sentence
from .values import Values
from .verdict import PolicyName, Verdict, VerdictWord

SIGNABLE_WORDS = ("GO", "CONDITIONAL")
MOST_FINDINGS = 2_000_000  # a policy of 500 checks and a promise of 8,192 nodes could make a billion


def score_run(run: Run, policy: Policy | None = None, baseline: Run | None = None) -> Verdict:
    """Judge a run by a policy: the one it carries unless another is given. Raises PolicyError for one that cannot be
    used, CostsError for such a file of costs. `baseline` is an earlier run to compare with: the one that the run
    carries unless another is given."""
    with collector_paused():
        return _judge(run, policy, baseline)


def _judge(run: Run, policy: Policy | None, baseline: Run | None) -> Verdict:
    if policy is None:
        policy = policy_from_text(run.header.policy.text, "run.json policy")
    stands = standing(run)
    figures = _figures(stands)
    earlier = baseline if baseline is not None else run.baseline
    judge = Judge(figures, Happenings(stands, whole=run), _figures(standing(earlier)) if earlier else None)
    every = (with_advice(finding, check) for check in policy.checks for finding in judge.findings(check))
    findings = tuple(islice(every, MOST_FINDINGS + 1))
    if len(findings) > MOST_FINDINGS:
        raise PolicyError(f"policy {policy.name} asks over {MOST_FINDINGS:,} things of these nodes: not judged")
    decision = decide(findings, run.header, policy.exclude_at_most, to_sign=policy.signable)
    if decision.out:  # what is judged of the whole takes out nobody, so that those who are out stay the same
        findings = over_the_rest(findings, policy.checks, figures, decision.out)
        decision = decide(findings, run.header, policy.exclude_at_most, to_sign=policy.signable)
    covered, failures = coverage(findings), reliability(run)
    return Verdict(
        run_id=run.header.run_id,
        verdict=decision.word,
        signable=_can_be_signed(decision.word, run, policy),
        sentence=sentence(decision, run.header, policy, covered),
        reasons=reasons(decision, remaining(findings, decision)),
        not_judged=not_judged(
            remaining(findings, decision),
            policy,
            {finding.check for finding in findings},
            with_baseline=earlier is not None,
        ),
        confidence=confidence(findings, failures, observed_seconds(run)),
        index=index(policy.checks, judge.shares, decision.out),
        exclude=decision.excluded,
        findings=findings,
        coverage=covered,
        economics=economics(run, figures, decision.excluded, findings, policy.terms),
        reliability=failures,
        policy=PolicyName(name=policy.name, sha256=policy.sha256),
        references=PolicyName(name=own.name, sha256=own.sha256) if (own := figures.facts.references.own) else None,
        measured=measured_when(run.header),
        compared=judge.compared.told(judge.baseline.name) if judge.baseline else None,
        caveats=caveats(run.header, policy),
    )


def _can_be_signed(word: VerdictWord, run: Run, policy: Policy) -> bool:
    """A simulated run, a part of one (--only), or a policy that does not decide: none is for signing."""
    whole = not run.header.simulated and not run.header.only
    return word in SIGNABLE_WORDS and policy.signable and whole


def verdict_json(verdict: Verdict) -> bytes:
    """The content of verdict.json."""
    return msgspec.json.format(msgspec.json.encode(verdict), indent=1) + b"\n"


def read_verdict(content: bytes) -> Verdict:
    """A verdict.json read back. Raises msgspec.MsgspecError where it is none."""
    return msgspec.json.decode(content, type=Verdict)


def _figures(run: Run) -> Figures:
    return Figures(run.header, Values(run), Facts(run))
