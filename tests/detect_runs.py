"""How often runs are told apart: writes the tables of docs/compare.md and its curve (`make detect`).

PYTHONPATH=.src:tests python tests/detect_runs.py [SEEDS]
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import altair as alt
from compared_clusters import false_claims, found_slower, whole_cluster

from hwlottery.scoring.comparison_figures import COMPARED
from hwlottery.scoring.comparison_sides import EVERYTHING

FOLDER = Path(__file__).resolve().parent.parent / "docs"
BEGIN, END = "<!-- tables: begin -->\n", "<!-- tables: end -->\n"
SLOWER = (0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 0.08, 0.10, 0.15, 0.20)
WILDER = (1.0, 1.25, 1.5, 2.0)
REPEATS = (0, 3, 5, 10)
NODES = (2, 4, 16, 64)
Curve = Mapping[float, Sequence[set[str]]]


def curve(seeds: range) -> Curve:
    """By how much slower the second cluster is, the figures in which each seed finds it."""
    return {slower: found_slower(seeds, whole_cluster(1 - slower)) for slower in SLOWER}


def share(found: Sequence[set[str]], key: str = "") -> float:
    """Of how many it was found: in any figure, or in one."""
    return sum(key in one if key else bool(one) for one in found) / len(found)


def tables(seeds: range, found: Curve) -> Iterator[str]:
    """Markdown."""
    yield f"Two runs of one cluster told apart in any figure, of {len(seeds)} seeds:\n\n"
    yield f"| nodes | {' | '.join(map(str, NODES))} |\n|---|{'---|' * len(NODES)}\n"
    yield f"| told apart | {' | '.join(f'{share(false_claims(seeds, nodes=nodes)):.4f}' for nodes in NODES)} |\n"
    yield "\nThe same where runs vary otherwise than stated, without and with repeated runs as history:\n\n"
    yield f"| standard deviation | {' | '.join(f'{count} more runs' for count in REPEATS)} |\n"
    yield f"|---|{'---|' * len(REPEATS)}\n"
    for wilder in WILDER:
        cells = [f"{share(false_claims(seeds, wilder=wilder, repeats=count)):.4f}" for count in REPEATS]
        yield f"| {wilder:g} x the default | {' | '.join(cells)} |\n"
    yield "\nA second cluster that is slower in everything, found in any figure and in each:\n\n"
    yield f"| slower by | {' | '.join(f'{slower:.0%}' for slower in found)} |\n|---|{'---|' * len(found)}\n"
    yield _row("any figure", found)
    for what in EVERYTHING:
        if what.key != "useful":  # told apart exactly as the cost is: the price has no error
            yield _row(what.title, found, what.key)


def _row(title: str, found: Curve, key: str = "") -> str:
    return f"| {title} | {' | '.join(f'{share(one, key):.3f}' for one in found.values())} |\n"


def drawing(found: Curve) -> str:
    """The curves as SVG, each labelled at its end."""
    import vl_convert

    titles = {"": "any figure", **{what.key: what.title for what in COMPARED}}
    rows = [
        {"figure": title, "slower": slower, "found": share(one, key)}
        for key, title in titles.items() for slower, one in found.items()
    ]  # fmt: skip
    x = alt.X("slower:Q", title="slower by", axis=alt.Axis(format="%"))
    y = alt.Y("found:Q", title="found", axis=alt.Axis(format="%"), scale=alt.Scale(domain=[0, 1]))
    lines = alt.Chart(alt.InlineData(values=rows)).mark_line(point=True).encode(
        x=x, y=y, color=alt.Color("figure:N", title=None, sort=list(titles.values())),
    )  # fmt: skip
    return vl_convert.vegalite_to_svg(lines.properties(width=560, height=320, background="white").to_json())


def main() -> None:
    """Write tables and drawing."""
    seeds = range(int(sys.argv[1]) if len(sys.argv) > 1 else 400)
    found = curve(seeds)
    document = FOLDER / "compare.md"
    before, rest = document.read_text(encoding="utf-8").split(BEGIN)
    made = BEGIN + "".join(tables(seeds, found)) + END + rest.split(END)[1]
    document.write_text(before + made, encoding="utf-8")
    (FOLDER / "compare.svg").write_text(drawing(found), encoding="utf-8")


if __name__ == "__main__":
    main()
