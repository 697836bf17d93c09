"""What a rental costs beside the accelerators, and how a failed node is made up for: the user's file (--costs FILE).

storage_usd_per_month: 4000
setup_hours: 40
spare: cold
replacement_hours: 48
"""

import hashlib
from pathlib import Path
from typing import Annotated

from pydantic import Field, model_validator

from ..evidence import Document, HwlotteryError
from ..evidence.user_files import Number, Strict
from ..references.loading import ReferenceFileError, model_from_text, text_of
from .projection import HOURS_A_MONTH, Spare

Usd = Annotated[Number, Field(ge=0, le=1e12)]
Hours = Annotated[Number, Field(ge=0, le=8760)]

COLD_SPARE_HOURS = 1.0
REPLACEMENT_HOURS = 24.0
RENTAL_MONTHS = 12.0


class CostsError(HwlotteryError):
    """A file of costs cannot be used; the message is one line naming file, key and choices."""


class Costs(Strict):
    """The whole of a file of costs. What it does not say is assumed.

    `spare`: a hot spare takes over at once and is paid for, a cold one after `cold_spare_hours`, with none the job
    waits for `replacement_hours`. `setup_hours` are paid before training begins, once in `rental_months`.
    """

    storage_usd_per_month: Usd = 0.0
    egress_usd_per_month: Usd = 0.0
    support_usd_per_month: Usd = 0.0
    setup_hours: Hours = 0.0
    rental_months: Annotated[Number, Field(gt=0, le=120)] = RENTAL_MONTHS
    spare: Spare | None = None
    recovery_minutes: Annotated[Number, Field(gt=0, le=10_080)] | None = None
    cold_spare_hours: Hours | None = None
    replacement_hours: Hours | None = None

    @property
    def usd_per_month(self) -> float:
        """Storage, egress and support together."""
        return self.storage_usd_per_month + self.egress_usd_per_month + self.support_usd_per_month

    @property
    def rental_hours(self) -> float:
        """The length of the rental."""
        return self.rental_months * HOURS_A_MONTH

    @model_validator(mode="after")
    def _some_of_it_trains(self) -> "Costs":
        if self.setup_hours >= self.rental_hours:
            raise ValueError(f"setup_hours leave nothing of the rental ({self.rental_hours:g} h): see rental_months")
        return self


def costs_document(file: Path) -> Document:
    """A user's file as a run carries it. Raises CostsError."""
    try:
        text = text_of(file)
    except ReferenceFileError as error:
        raise CostsError(str(error)) from error
    document = Document(name=file.name[-120:], sha256=hashlib.sha256(text.encode()).hexdigest(), text=text)
    costs_of(document)
    return document


def costs_of(document: Document | None) -> Costs:
    """What a run's file of costs says; without one nothing but what is assumed. Raises CostsError."""
    if document is None:
        return Costs()
    try:
        return model_from_text(document.text, document.name, Costs)
    except ReferenceFileError as error:
        raise CostsError(str(error)) from error
