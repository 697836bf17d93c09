"""A check on one subject, with what is the same for all of the values that it asks for."""

from functools import cached_property

import msgspec

from ..evidence import Metric
from .derived import Figures
from .findings import Standing, new_finding, standing
from .peer_groups import Place
from .policy_model import Check
from .scope import Target
from .verdict import Finding, Result


class Case:
    """The check and its subject; `peers` is where its values are compared."""

    def __init__(self, check: Check, target: Target, described: Metric, figures: Figures, peers: Place) -> None:
        self.check = check
        self.target = target
        self.described = described
        self.peers = peers
        self._figures = figures
        self._standing: dict[tuple[Result, str], Standing] = {}

    @cached_property
    def blank(self) -> Finding:
        """The finding with nothing observed."""
        finding = new_finding(self.check, self.target, "not_measured", self._figures.facts)
        return msgspec.structs.replace(finding, metric=self.described.name, unit=self.described.unit)

    def standing(self, result: Result, reason: str) -> Standing:
        """How such a result counts."""
        found = self._standing.get((result, reason))
        if found is None:
            found = standing(self.check, self.target, result, reason, self._figures.facts)
            self._standing[result, reason] = found
        return found
