"""What a policy may say of what was agreed beside the figures."""

from datetime import date
from typing import Annotated

from pydantic import Field

from ..evidence.user_files import Number, Strict, Whole

Text = Annotated[str, Field(max_length=1000)]
Days = Annotated[Number, Field(gt=0, le=3650)]
Nodes = Annotated[Whole, Field(ge=1, le=1_000_000)]
Day = Annotated[date, Field(ge=date(2000, 1, 1), le=date(2200, 1, 1))]


class Terms(Strict):
    """What was agreed beside the figures: for the contract annex, and to judge what no run can measure.

    `replacement_hours`: until a node that was taken out is replaced. `days_to_cure`: until what falls short is mended.
    """

    buyer: Text = ""
    provider: Text = ""
    nodes: Nodes | None = None
    accelerators_per_node: Annotated[Whole, Field(ge=1, le=1024)] | None = None
    accelerator: Text = ""
    delivery: Day | None = None
    replacement_hours: Annotated[Number, Field(gt=0, le=87_600)] | None = None
    days_to_cure: Days | None = None
    notes: tuple[Text, ...] = ()
