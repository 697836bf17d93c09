"""Who is compared with whom: like subjects of one check, made into groups once."""

from ..outliers import Group, group_of
from .asking import Wants
from .derived import Figures
from .policy_model import Check
from .scope import Target
from .series import NO_KIND, Value
from .values import ParamsKey, params_key

Place = tuple[str, str]  # the check, and within what: a node or all, one kind of accelerator
_Key = tuple[Place, int | ParamsKey]


class PeerGroups:
    """The groups of all checks that have a peers layer."""

    def __init__(self, figures: Figures, wants: Wants) -> None:
        self._figures = figures
        self._wants = wants
        self._groups: dict[_Key, Group] = {}

    def gather(self, check: Check, scope: list[Target]) -> None:
        """Make a check's groups from the last attempts of its subjects."""
        numbers: dict[_Key, list[float]] = {}
        for target in scope:
            place = self.place(check, target)
            for value in self._wants.among(check, self._figures.of(check.metric or "", target.subject))[0]:
                group = numbers.setdefault((place, _like(value)), [])
                if value.value is not None:
                    group.append(value.value)
        self._groups.update({key: group_of(found) for key, found in numbers.items()})

    def of(self, place: Place, value: Value) -> Group:
        """The group that a value belongs to; an empty one where there is none."""
        return self._groups.get((place, _like(value))) or group_of([])

    def place(self, check: Check, target: Target) -> Place:
        """The same check and kind of accelerator, on one node or on all."""
        peers = check.layers.peers
        where = target.nodes[0] if peers is not None and peers.within == "node" and target.nodes else ""
        kind = self._figures.facts.get(target.subject, "accelerator.name") if check.each == "accelerator" else None
        return check.check, f"{where}|{kind}"


def _like(value: Value) -> int | ParamsKey:
    """Equal for values with equal params."""
    return params_key(value.params) if value.like == NO_KIND else value.like
