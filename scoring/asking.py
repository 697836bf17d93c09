"""Which values a check asks for: those whose params fit its `where`, and what of it nobody measured."""

from ..evidence.records import Params, Scalar
from .derived import Figures
from .policy_layers import Range, Wanted
from .policy_model import Check
from .scope import Target
from .series import NO_KIND, Value


class Wants:
    """What the checks of one policy ask of a run's values. Which of a subject's values a check asks for is looked up
    once for all subjects whose values have the same params."""

    def __init__(self, figures: Figures) -> None:
        self._figures = figures
        self._known: dict[tuple[str, tuple[int, ...]], tuple[tuple[int, ...], list[Params]]] = {}

    def of(self, check: Check, target: Target) -> tuple[list[Value], list[Params]]:
        """The values that a check judges on a subject, and the params that it asks for and nobody measured."""
        if target.unknown:
            return [], [{}]
        found = self._figures.of(check.metric or "", target.subject)
        if target.also:
            found = [*found, *self._figures.of(check.metric or "", target.also)]
        return self.among(check, found)

    def among(self, check: Check, found: list[Value]) -> tuple[list[Value], list[Params]]:
        """The same of a subject's values."""
        kinds = tuple([value.kind for value in found])
        if NO_KIND in kinds:
            places, gaps = _wanted(check, found)
        else:
            known = self._known.get((check.check, kinds))
            places, gaps = known or self._known.setdefault((check.check, kinds), _wanted(check, found))
        return [found[place] for place in places], gaps


def _wanted(check: Check, found: list[Value]) -> tuple[tuple[int, ...], list[Params]]:
    """The places of the values that a check asks for, and what of it has no value."""
    places = tuple(place for place, value in enumerate(found) if asked(value.params, check.where))
    values = [found[place] for place in places]
    gaps = [gap for key, wanted in check.where.items() for gap in _gaps(key, wanted, values)]
    return places, gaps if values else gaps or [{}]


def asked(params: Params, where: dict[str, Wanted]) -> bool:
    """Whether a value with these params is one of those that `where` asks for."""
    for key, wanted in where.items():  # noqa: SIM110  # a plain loop: it runs for each value and check
        if key not in params or not _within(params[key], wanted):
            return False
    return True


def _gaps(key: str, wanted: Wanted, values: list[Value]) -> list[Params]:
    """Each single value of a param that is asked for and has no value at all."""
    if isinstance(wanted, Range):
        return []
    each = wanted if isinstance(wanted, tuple) else (wanted,)
    return [{key: one} for one in each if not any(_same(value.params[key], one) for value in values)]


def _within(value: Scalar, wanted: Wanted) -> bool:
    if isinstance(wanted, tuple):
        return any(_same(value, one) for one in wanted)
    if not isinstance(wanted, Range):
        return _same(value, wanted)
    if isinstance(value, str | bool):
        return False
    above = wanted.at_least is None or value >= wanted.at_least
    return above and (wanted.at_most is None or value <= wanted.at_most)


def _same(value: Scalar, wanted: Scalar) -> bool:
    """yes is not 1."""
    return value == wanted and isinstance(value, bool) == isinstance(wanted, bool)
