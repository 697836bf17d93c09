"""Params that occur, each once: a run of a hundred thousand values has a few dozen of them."""

from msgspec import Struct

from ..evidence.records import Params

ParamsKey = tuple[tuple[str, bool | int | float | str], ...]


class ParamsKind(Struct, frozen=True, kw_only=True, gc=False):
    """Params as they are written, with a number of their own. `like` is one number for all that are equal: those that
    say 1 and yes, or have another order, are one value's params, and yet not asked for alike."""

    params: Params
    number: int
    like: int


class ParamsKinds:
    """The kinds of params that a run's records have."""

    def __init__(self) -> None:
        self._known: dict[tuple[object, ...], ParamsKind] = {}
        self._like: dict[ParamsKey, int] = {(): 0}
        self._none = self._known[()] = ParamsKind(params={}, number=0, like=0)

    def of(self, params: Params) -> ParamsKind:
        """The kind of a record's params."""
        if not params:
            return self._none
        values = params.values()
        written = (*params, *values, *map(type, values))
        found = self._known.get(written)
        if found is None:
            like = self._like.setdefault(params_key(params), len(self._like))
            found = self._known[written] = ParamsKind(params=params, number=len(self._known), like=like)
        return found


def params_key(params: Params) -> ParamsKey:
    """Params as a key that does not depend on their order."""
    return tuple(sorted(params.items())) if len(params) > 1 else tuple(params.items())
