"""What each kind of fabric between nodes gives (fabrics.yaml), found by technology, number and rate of a node's NICs,
the platform and the accelerator: the same accelerator on another fabric is another thing."""

from collections.abc import Collection
from typing import Annotated, Literal

from msgspec import Struct
from pydantic import Field

from .entries import Entry, Positive, Text

Technology = Literal["infiniband", "roce", "efa", "ethernet", "nvlink"]
# A node may have a NIC or two of the same rate besides, for storage or management.
_MORE_NICS = 2


class Network(Struct, frozen=True, kw_only=True):
    """A node's way to others, as its facts show it: so many NICs of the fastest kind, in Gbit/s each.

    `vendor` is what the firmware calls the machine's maker; `accelerators` are the keys of its accelerators' kinds.
    """

    technology: Technology
    nics: int
    gbit: float
    vendor: str = ""
    accelerators: tuple[str, ...] = ()


class Fabric(Entry):
    """A kind of fabric and its values. `gbit` is the line rate of one NIC; `vendors` are names as the firmware gives
    them, `accelerators` keys of accelerators.yaml: where none is named any fits."""

    title: Text
    technology: Technology
    nics: Annotated[int, Field(ge=0, le=1024)]
    gbit: Positive
    vendors: tuple[Text, ...] = ()
    accelerators: tuple[Text, ...] = ()

    @property
    def line_rate(self) -> float:
        """GB/s in one direction, of all NICs of a node together."""
        return self.nics * self.gbit / 8

    def is_this(self, network: Network) -> bool:
        """Whether a node with such a network is of this kind."""
        return (
            network.technology == self.technology
            and self.nics <= network.nics <= self.nics + _MORE_NICS
            and abs(network.gbit / self.gbit - 1) < 0.01
            and _names(self.vendors, (network.vendor,))
            and _names(self.accelerators, network.accelerators)
        )

    @property
    def closeness(self) -> tuple[int, int]:
        """How much this entry asks for: the one that asks for most is tried first."""
        return bool(self.vendors) + bool(self.accelerators), self.nics


def _names(wanted: Collection[str], found: Collection[str]) -> bool:
    """Whether everything found is among what is wanted, whole and without regard to case."""
    known = {name.casefold() for name in wanted}
    return not wanted or (bool(found) and all(name.casefold() in known for name in found))
