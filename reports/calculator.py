"""The page's calculator: what a reader may change, from the situation that the economics were computed from."""

from ..scoring.projection import Situation, Spare
from ..scoring.verdict import Economics
from .layout import Calculator, Field

_WAYS: dict[Spare, str] = {"hot": "a hot spare", "cold": "a cold spare", "none": "no spare"}
_OUTPUTS = (
    ("goodput", "Goodput"),
    ("effective", "Effective throughput"),
    ("usd", "USD a useful PFLOP-day"),
    ("time", "Time of the run"),
    ("cost", "Cost of the run"),
)


def calculator(money: Economics) -> Calculator | None:
    """None where goodput could not be had: then there is nothing to start from."""
    at = money.situation
    if at is None:
        return None
    return Calculator(
        fields=_fields(at),
        outputs=_OUTPUTS,
        waits=tuple((_WAYS[way.spare], _shown(way.wait_hours), str(way.spare_nodes)) for way in money.replacements),
        way=next((_WAYS[way.spare] for way in money.replacements if way.assumed), ""),
        constants={
            "gpus": at.accelerators / at.nodes,
            "idle": at.paid_accelerators - at.accelerators,
            "tflops": at.tflops,
            "mfu": at.mfu,
            "loss": at.straggler_loss,
            "monthly": at.usd_per_month,
            "setup": at.setup_hours,
            "rental": at.rental_hours,
        },
    )


def _fields(at: Situation) -> tuple[Field, ...]:
    """In the order in which the page's script reads them."""
    return (
        Field(name="price", label="USD a GPU-hour", value=_shown(at.usd_per_gpu_hour), required=False),
        Field(name="nodes", label="Nodes that train", value=_shown(at.nodes), least="1", most="1e6"),
        Field(
            name="rate", label="Failures, 1,000 node-days", value=_shown(at.failures_per_node_day * 1000), most="1e6"
        ),
        Field(name="save", label="A save, s", value=_shown(at.save_s), least="0.001"),
        Field(name="recovery", label="Recovery, min", value=_shown(at.recovery_s / 60)),
        Field(name="wait", label="Wait for another node, h", value=_shown(at.wait_s / 3600)),
        Field(name="spares", label="Spare nodes, paid for", value=_shown(at.spare_nodes), most="1e6"),
        Field(name="flops", label="FLOPs of a run", value=_shown(at.run_flops), least="1", most="1e40", required=False),
    )


def _shown(number: float | None) -> str:
    return "" if number is None else f"{number:.6g}"
