"""How often slow nodes and links are found: writes the tables of docs/pairs.md (`make detect`).

PYTHONPATH=.src:tests python tests/detect_pairs.py [MATRICES]
"""

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from pair_matrices import Tally, tally

from hwlottery.fabric import Thresholds

DOCUMENT = Path(__file__).resolve().parent.parent / "docs" / "pairs.md"
BEGIN, END = "<!-- tables: begin -->\n", "<!-- tables: end -->\n"
NODES = (2, 3, 4, 5, 6, 8, 12, 16)
NOISES = (0.01, 0.03)
SEED = 20261130
# What is wrong: bad nodes, bad links, share of pairs that cannot be measured.
KINDS = {
    "nothing": (0, 0, 0.0),
    "nothing, a fifth of the pairs missing": (0, 0, 0.2),
    "one node": (1, 0, 0.0),
    "two nodes": (2, 0, 0.0),
    "one link": (0, 1, 0.0),
    "one node and one link": (1, 1, 0.0),
    "one node, a fifth of the pairs missing": (1, 0, 0.2),
    "two nodes, a fifth of the pairs missing": (2, 0, 0.2),
    "one link, a fifth of the pairs missing": (0, 1, 0.2),
}
Results = dict[tuple[str, int], Tally]


def results(noise: float, matrices: int, nodes: Iterable[int] = NODES, effect: float = 0.10) -> Results:
    """Each kind of fault at each number of nodes."""
    return {
        (kind, count): tally(
            nodes=count, bad_nodes=bad, bad_links=links, missing=missing, noise=noise, matrices=matrices, seed=SEED,
            thresholds=Thresholds(effect=effect),
        )
        for kind, (bad, links, missing) in KINDS.items()
        for count in nodes
    }  # fmt: skip


def tables(noise: float, found: Results, matrices: int) -> Iterator[str]:
    """Markdown: right where decided, right where not, and who was wrongly blamed."""
    yield f"### Noise of {noise:.0%}, {matrices:,} matrices a cell\n\n"
    yield "Exactly the faulty ones named, of the matrices whose measured pairs decide it (their share in brackets):\n\n"
    yield from _table(found, _exact)
    yield "\nWhere the measured pairs do not decide it: nobody wrongly blamed, and the doubt said (their number):\n\n"
    yield from _table(found, _sound)
    yield "\nSomebody healthy blamed, of all matrices:\n\n"
    yield from _table(found, lambda one: f"{one.wronged / one.matrices:.4f}")
    yield "\n"


def _table(found: Results, cell: object) -> Iterator[str]:
    counts = sorted({count for _, count in found})
    yield f"| what is wrong | {' | '.join(f'n = {count}' for count in counts)} |\n"
    yield f"|---|{'---|' * len(counts)}\n"
    for kind in KINDS:
        cells = [cell(found[kind, count]) for count in counts]  # type: ignore[operator]
        yield f"| {kind} | {' | '.join(cells)} |\n"


def _exact(one: Tally) -> str:
    return f"{one.exact / one.decided:.3f} ({one.decided / one.matrices:.0%})" if one.decided else "never decided"


def _sound(one: Tally) -> str:
    left = one.matrices - one.decided
    return f"{one.sound / left:.3f} ({left:,})" if left else "all decided"


def main() -> None:
    """Write the tables into the document."""
    matrices = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    made = "".join(part for noise in NOISES for part in tables(noise, results(noise, matrices), matrices))
    before, rest = DOCUMENT.read_text().split(BEGIN)
    DOCUMENT.write_text(before + BEGIN + made + END + rest.split(END)[1])


if __name__ == "__main__":
    main()
