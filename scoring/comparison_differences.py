"""What is not the same in two runs, and what that means for each figure: it forbids a comparison, it may be the reason
for a difference, or it is only noted."""

from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct

from .comparison_figures import Compared, Lacking
from .comparison_sides import EVERYTHING, Effect, Side
from .values import ParamsKey
from .words import counted, figure, params_in_words, several

_Read = Callable[[Side], str]
_LONGEST = 200
_MONTHS_APART = 30  # days


class Aspect(Struct, frozen=True, kw_only=True):
    """Something in which runs may differ. `of` are the keys of the figures it touches; none of them: all."""

    name: str
    read: _Read
    effect: Effect
    why: str
    of: frozenset[str] = frozenset()

    def touches(self, what: Compared) -> bool:
        """Whether this figure is touched."""
        return not self.of or what.key in self.of


class Difference(Struct, frozen=True, kw_only=True):
    """An aspect in which the runs are not alike: one value a run, in their order. `metrics` are the titles of the
    figures it touches; empty where it touches none by itself."""

    aspect: str
    values: tuple[str, ...]
    effect: Effect
    metrics: tuple[str, ...]
    why: str


def _keys(*categories: str) -> frozenset[str]:
    return frozenset(what.key for what in EVERYTHING if what.category in categories)


_OF_ONE_KIND = frozenset(what.key for what in EVERYTHING if what.same_kind)
_SPEED = _keys("compute", "training")
_STACK = "may be the software's doing, not the provider's: run again with the same"


def _software(key: str) -> _Read:
    return lambda side: side.most(f"software.{key}")


def _kind(side: Side) -> str:
    """Its name and memory: an 80 GB and a 40 GB one of a name are two products."""
    memory = side.most("accelerator.memory")
    return f"{side.most('accelerator.name')}, {figure(int(memory), 'bytes') if memory.isdigit() else memory}"


def _power(side: Side) -> str:
    value = side.most("accelerator.power_limit")
    return value if value == "not recorded" else f"{value} W"


def _storage(side: Side) -> str:
    shared = {"/" not in name.partition("fs:")[0] for name in side.header.filesystems}
    words = {frozenset({True}): "a shared filesystem", frozenset({False}): "each node's own disk"}
    return words.get(frozenset(shared), "both" if shared else "none")


def _tiers(side: Side) -> str:
    return several(side.tiers, 3) if side.tiers else "not recorded"


def _ranks(side: Side) -> str:
    return several([str(count) for count in sorted({len(node.ranks) for node in side.header.promised})], 3)


ASPECTS: tuple[Aspect, ...] = (
    Aspect(
        name="record", effect="forbids", why="a simulation measures nothing",
        read=lambda side: "simulated" if side.header.simulated else "measured",
    ),
    Aspect(
        name="device", effect="forbids", why="CPUs and GPUs are no like for like",
        read=lambda side: "GPUs" if side.header.device == "cuda" else "CPUs",
    ),
    Aspect(
        name="accelerator", effect="forbids", of=_OF_ONE_KIND, read=_kind,
        why="another product: by training speed, storage and money alone",
    ),
    Aspect(
        name="checkpoints go to", effect="forbids", of=_keys("storage"), read=_storage,
        why="a node's own disk is no place that other nodes can read",
    ),
    Aspect(
        name="power limit", effect="may explain", of=_SPEED, read=_power,
        why="set by the provider, and part of what is paid for",
    ),
    Aspect(name="nodes", effect="may explain", of=_keys("training"), why="more nodes wait for each other more",
           read=lambda side: str(len(side.header.promised))),
    Aspect(name="accelerators a node", effect="may explain", of=_keys("training", "fabric", "storage"), read=_ranks,
           why="they share links, NICs and storage"),
    Aspect(name="torch", effect="may explain", of=_SPEED | _keys("storage"), read=_software("torch"), why=_STACK),
    Aspect(name="CUDA", effect="may explain", of=_SPEED, read=_software("cuda"), why=_STACK),
    Aspect(name="NCCL", effect="may explain", of=_keys("fabric", "training"), read=_software("nccl"), why=_STACK),
    Aspect(name="driver", effect="may explain", of=_keys("compute", "memory", "fabric", "training"),
           read=_software("driver"), why="the provider's, most often: ask for the newer one"),
    Aspect(name="further costs", effect="may explain", of=frozenset({"money"}), why="paid beside the accelerators",
           read=lambda side: f"as in {own.name}" if (own := side.header.costs) else "none given"),
    Aspect(name="profile", effect="noted", why="other durations and sample sizes; settings are compared one by one",
           read=lambda side: f"{side.header.profile.name} {side.header.profile.sha256[:8]}"),
    Aspect(name="policy", effect="noted", why="the verdicts were reached by different demands",
           read=lambda side: f"{side.verdict.policy.name} {side.verdict.policy.sha256[:8]}"),
    Aspect(name="access tier", effect="noted", why="where less can be seen, less can be found", read=_tiers),
    Aspect(name="hwlottery", effect="noted", why="its methods are compared probe by probe",
           read=lambda side: side.header.segments[-1].hwlottery if side.header.segments else "not recorded"),
)  # fmt: skip


def method_of(side: Side, what: Compared) -> str:
    """The versions of the method by which a figure was measured."""
    methods = side.methods.get(what.probe)
    return several(methods, 3) if methods else "not run"


def like(side: Side, what: Compared) -> tuple[str, ...]:
    """What must be the same for a figure to be compared: runs with the same answer may be."""
    forbidding = (aspect for aspect in ASPECTS if aspect.effect == "forbids" and aspect.touches(what))
    return (*(aspect.read(side) for aspect in forbidding), method_of(side, what))


def explaining(one: Side, other: Side, what: Compared) -> tuple[str, ...]:
    """The aspects that may be the reason for a difference between two runs."""
    reasons = (aspect for aspect in ASPECTS if aspect.effect == "may explain" and aspect.touches(what))
    return tuple(aspect.name for aspect in reasons if aspect.read(one) != aspect.read(other))


def differences(sides: Sequence[Side], settings: dict[str, ParamsKey | None]) -> tuple[Difference, ...]:
    """All that is not alike, the gravest first. `settings` are the params that each figure is compared with."""
    order: dict[Effect, int] = {"forbids": 0, "may explain": 1, "noted": 2}
    found = [*_of_aspects(sides), *_of_methods(sides), *_of_settings(sides, settings), *_of_dates(sides)]
    return tuple(sorted(found, key=lambda one: order[one.effect]))


def _of_aspects(sides: Sequence[Side]) -> Iterator[Difference]:
    for aspect in ASPECTS:
        values = tuple(aspect.read(side)[:_LONGEST] for side in sides)
        if len(set(values)) > 1:
            touched = tuple(what.title for what in EVERYTHING if aspect.touches(what) and aspect.effect != "noted")
            yield Difference(
                aspect=aspect.name, values=values, effect=aspect.effect, metrics=touched, why=aspect.why
            )  # fmt: skip


def _of_methods(sides: Sequence[Side]) -> Iterator[Difference]:
    for probe in dict.fromkeys(what.probe for what in EVERYTHING):
        measured_by = [what for what in EVERYTHING if what.probe == probe]
        values = tuple(method_of(side, measured_by[0]) for side in sides)
        if len({value for value in values if value != "not run"}) > 1:
            titles = tuple(what.title for what in measured_by)
            why = "another way to measure gives other figures"
            yield Difference(aspect=f"method of {probe}", values=values, effect="forbids", metrics=titles, why=why)


def _of_settings(sides: Sequence[Side], settings: dict[str, ParamsKey | None]) -> Iterator[Difference]:
    """Figures that some runs measured with other sizes or types alone."""
    for what in EVERYTHING:
        key = settings.get(what.key)
        have = [side.settings[what.key] for side in sides]
        if key is None or all(isinstance(one, Lacking) or key in one for one in have):
            continue
        values = tuple("not measured" if isinstance(one, Lacking) else _words(key, list(one)) for one in have)
        yield Difference(
            aspect=f"settings of {what.title.lower()}", values=values, effect="forbids", metrics=(what.title,),
            why="other sizes give other figures",
        )  # fmt: skip


def _words(key: ParamsKey, keys: Sequence[ParamsKey]) -> str:
    return params_in_words(dict(key if key in keys else keys[0]))[:_LONGEST] or "no settings"


def _of_dates(sides: Sequence[Side]) -> Iterator[Difference]:
    starts = [side.started for side in sides]
    known = [start for start in starts if start is not None]
    if len(known) > 1 and (max(known) - min(known)).days >= _MONTHS_APART:
        values = tuple(f"{start:%Y-%m-%d}" if start else "unknown" for start in starts)
        why = f"{counted((max(known) - min(known)).days, 'day')} apart: prices, software and neighbours change"
        yield Difference(aspect="date", values=values, effect="noted", metrics=(), why=why)
