"""A real run of inventory and matmul on this machine, in which some slots are slow on purpose.

    python -m drills.slow_slots OUT PROFILE POLICY

In fp32 slot2 is slow in each attempt, in bf16 slot1 in the first.
"""

import dataclasses
import sys
from pathlib import Path

import msgspec

from hwlottery.evidence import Promised
from hwlottery.probes import matmul
from hwlottery.probes.inventory import Inventory

SLOTS = 4
PACE_S, SLOW_S = 0.010, 0.012
SLOW = {"fp32": {"slot2": (1, 2, 3)}, "bf16": {"slot1": (1,)}}


class Drilled(matmul.Matmul):
    """The matmul probe, whose bursts are those below."""

    def plan(self, cluster, settings, seed):
        plan = super().plan(cluster, settings, seed)
        trials = next(plan)
        while True:
            outcomes = yield [
                msgspec.structs.replace(
                    trial, function="drills.slow_slots:burst", params={**trial.params, "attempt": trial.attempt}
                )
                for trial in trials
            ]
            try:
                trials = plan.send(outcomes)
            except StopIteration:
                return


class Pace:
    """A clock that counts what products are said to take: how busy the machine is does not matter."""

    def __init__(self):
        self.now = 0.0

    def mark(self):
        return self.now

    def wait(self, mark):
        pass

    def seconds(self, start, end):
        return end - start


def burst(context, params):
    """matmul's burst: real products, in the time that the drill gives them."""
    whole, pace = (matmul.make_product, matmul.clock_of), Pace()
    slow = params["attempt"] in SLOW[params["dtype"]].get(context.subject.split("/")[1], ())

    def paced(*given):
        product = whole[0](*given)

        def run():
            pace.now += (SLOW_S if slow else PACE_S) * (1 + context.rank / 1000)
            return product.run()

        return dataclasses.replace(product, run=run)

    matmul.make_product, matmul.clock_of = paced, lambda context: pace
    try:
        return matmul.burst(context, params)
    finally:
        matmul.make_product, matmul.clock_of = whole


def main(out, profile, policy):
    from hwlottery.probes.profiles import load_profile
    from hwlottery.runner import run, session
    from hwlottery.scoring import document_for, doubts_of

    slots = tuple(f"slot{index}" for index in range(SLOTS))
    # More than a small machine has cores.
    run.promised_here = lambda _: Promised(node="here", device="cpu", ranks=slots)
    session.PROBES = run.PROBES = (Inventory(), Drilled())
    asked = run.Request(
        out=Path(out),
        profile=load_profile(profile),
        policy=document_for(policy, "mine"),
        scratch=Path(out).parent,
        doubts=doubts_of,
    )
    run.start(asked, lambda progress: None)


if __name__ == "__main__":
    main(*sys.argv[1:])
