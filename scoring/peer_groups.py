"""Who is compared with whom: like subjects of one check, made into groups once."""

from ..evidence.records import Params
from ..outliers import Group, group_of
from .asking import asked
from .derived import Figures
from .policy_model import Check
from .scope import Target
from .values import ParamsKey, params_key

_Key = tuple[str, str, ParamsKey]


class PeerGroups:
    """The groups of all checks that have a peers layer."""

    def __init__(self, figures: Figures) -> None:
        self._figures = figures
        self._groups: dict[_Key, Group] = {}

    def gather(self, check: Check, scope: list[Target]) -> None:
        """Make a check's groups from the last attempts of its subjects."""
        numbers: dict[_Key, list[float]] = {}
        for target in scope:
            for value in self._figures.of(check.metric or "", target.subject):
                if asked(value.params, check.where):
                    group = numbers.setdefault(self._key(check, target, value.params), [])
                    group.extend([] if value.value is None else [value.value])
        self._groups.update({key: group_of(found) for key, found in numbers.items()})

    def of(self, check: Check, target: Target, params: Params) -> Group:
        """The group that a subject's value belongs to; an empty one where there is none."""
        return self._groups.get(self._key(check, target, params)) or group_of([])

    def _key(self, check: Check, target: Target, params: Params) -> _Key:
        """The same check, params and kind of accelerator, on one node or on all."""
        peers = check.layers.peers
        where = target.nodes[0] if peers is not None and peers.within == "node" and target.nodes else ""
        kind = self._figures.facts.get(target.subject, "accelerator.name") if check.each == "accelerator" else None
        return (check.check, f"{where}|{kind}", params_key(params))
