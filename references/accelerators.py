"""What each kind of accelerator can do (accelerators.yaml), found by exact name, memory size and power limit."""

from typing import Annotated

from pydantic import Field

from .entries import Entry, Positive, Text

GIB = 2**30

# A device shows less than its label: ECC and firmware take up to 7% of it (a 48 GB L40S shows 45.0 GiB).
_LEAST_OF_LABEL, _MOST_OF_LABEL = 0.92, 1.02
# Power limits are set in whole watts; a cap that somebody set is further away than this.
_POWER_TOLERANCE = 0.02


class Accelerator(Entry):
    """A kind of accelerator and its values. Memory as on the label, in GB; power limit in W."""

    names: Annotated[tuple[Text, ...], Field(min_length=1)]
    memory_gb: Positive | None = None
    power_limit_w: Positive | None = None

    def is_this(self, name: str, memory_bytes: int | None, power_limit_w: float | None) -> bool:
        """Whether a device of that name, memory and power limit is of this kind.

        A memory that is not known fits no entry that asks for one. A power limit that is not known (closed to the
        tenant) fits: the reference at full power then demands the most, so it flatters nobody.
        """
        return (
            _plain(name) in map(_plain, self.names) and self._memory_fits(memory_bytes) and self._power(power_limit_w)
        )

    def _memory_fits(self, memory_bytes: int | None) -> bool:
        if self.memory_gb is None:
            return True
        if memory_bytes is None:
            return False
        return _LEAST_OF_LABEL <= memory_bytes / GIB / self.memory_gb <= _MOST_OF_LABEL

    def _power(self, power_limit_w: float | None) -> bool:
        if self.power_limit_w is None or power_limit_w is None:
            return True
        return abs(power_limit_w / self.power_limit_w - 1) <= _POWER_TOLERANCE

    @property
    def closeness(self) -> tuple[int, int]:
        """How much this entry asks for: the one that asks for most is tried first."""
        asked = (self.memory_gb is not None) + (self.power_limit_w is not None)
        return asked, max(map(len, self.names))


def _plain(name: str) -> str:
    return " ".join(name.split()).casefold()
