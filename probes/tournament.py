"""Who meets whom: schedules of rounds of disjoint pairs, for nodes numbered from 0. Pure.

round_robin(4)   [(0, 3), (1, 2)]  [(0, 2), (3, 1)]  [(0, 1), (2, 3)]     every pair once
hypercube(4)     [(0, 1), (2, 3)]  [(0, 2), (1, 3)]                       log2(n) partners each
ring(5)          [(0, 1), (2, 3)]  [(1, 2), (3, 4)]  [(0, 4)]             both neighbours
"""

Meeting = tuple[int, int]  # the smaller number first
FEWEST_PARTNERS = 3  # two tell a node from its links, and one may fail


def round_robin(nodes: int) -> list[list[Meeting]]:
    """Every pair exactly once: n-1 rounds for an even number of nodes, n for an odd one, in each of which one rests.

    The circle method: the first node stays, the others move on by one place a round; with an odd number the one that
    stays is nobody, and whoever meets him rests.
    """
    seats: list[int | None] = [*range(nodes), *([None] if nodes % 2 else [])]
    rounds = []
    for _ in range(len(seats) - 1):
        facing = zip(seats[: len(seats) // 2], reversed(seats), strict=False)
        rounds.append([_ordered(one, other) for one, other in facing if one is not None and other is not None])
        seats = [seats[0], seats[-1], *seats[1:-1]]
    return [meetings for meetings in rounds if meetings]


def hypercube(nodes: int) -> list[list[Meeting]]:
    """Partners whose numbers differ in one bit, a round for each bit: ceil(log2 n) rounds.

    Where n is no power of two some lack a partner in a round: these meet each other then, where they have not met yet.
    Who has fewer than three partners in the end (the 65th of 65, say) meets more in rounds of its own.
    """
    rounds: list[list[Meeting]] = []
    met: dict[int, set[int]] = {node: set() for node in range(nodes)}
    for bit in range((nodes - 1).bit_length() if nodes > 1 else 0):
        meetings = [(node, node ^ 1 << bit) for node in range(nodes) if node < node ^ 1 << bit < nodes]
        taken = {node for meeting in meetings for node in meeting}
        left = [node for node in range(nodes) if node not in taken]
        rounds.append(_noted(meetings + _matched(left, left, met), met))
    while short := [node for node in range(nodes) if len(met[node]) < min(FEWEST_PARTNERS, nodes - 1)]:
        rounds.append(_noted(_matched(short, sorted(met, key=lambda node: len(met[node])), met), met))
    return rounds


def ring(nodes: int) -> list[list[Meeting]]:
    """Each node with both of its neighbours: two rounds, three for an odd number; one pair for two nodes."""
    beside = [[(node, node + 1) for node in range(start, nodes - 1, 2)] for start in (0, 1)]
    closing = [(0, nodes - 1)] if nodes > 2 else []
    rounds = [beside[0], beside[1] + closing] if nodes % 2 == 0 else [*beside, closing]
    return [meetings for meetings in rounds if meetings]


def _ordered(one: int, other: int) -> Meeting:
    return (one, other) if one < other else (other, one)


def _matched(wanting: list[int], offered: list[int], met: dict[int, set[int]]) -> list[Meeting]:
    """Disjoint pairs of each of `wanting` with the first of `offered` that it has not met; who finds nobody rests."""
    taken: set[int] = set()
    meetings = []
    for one in wanting:
        free = (node for node in offered if node not in taken and node != one and node not in met[one])
        other = next(free, None) if one not in taken else None
        if other is not None:
            taken |= {one, other}
            meetings.append(_ordered(one, other))
    return meetings


def _noted(meetings: list[Meeting], met: dict[int, set[int]]) -> list[Meeting]:
    for one, other in meetings:
        met[one].add(other)
        met[other].add(one)
    return sorted(meetings)
