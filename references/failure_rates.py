"""How often nodes of large clusters fail, as their operators published it: all causes, nodes of eight accelerators."""

from msgspec import Struct


class PublishedRate(Struct, frozen=True, kw_only=True):
    """Failures per node-day of one published cluster. `source` is where it stands; `derived` says from what it was
    computed where the source gives no rate."""

    name: str
    rate: float
    source: str
    derived: str = ""


PUBLISHED_RATES: tuple[PublishedRate, ...] = (
    PublishedRate(name="Meta RSC-1, 16,000 A100", rate=6.50e-3, source="arXiv:2410.21680"),
    PublishedRate(name="Meta RSC-2, 8,000 A100", rate=2.34e-3, source="arXiv:2410.21680"),
    PublishedRate(
        name="Llama 3, 16,384 H100",
        rate=419 / (2048 * 54),
        source="arXiv:2407.21783",
        derived="419 unexpected interruptions in 54 days of 2,048 nodes",
    ),
    PublishedRate(
        name="Imbue, 511 H100 nodes",
        rate=0.03 / 7,
        source="imbue.com, From bare metal to a 70B model",
        derived="about 3 % of machines a week",
    ),
)
