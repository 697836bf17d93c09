"""What doctor says of one thing it looked at."""

from typing import Literal

from msgspec import Struct

State = Literal["ok", "problem", "note"]


class Advice(Struct, frozen=True, kw_only=True):
    """One thing looked at: what was found, and for a problem (or a note) what to do.

    A problem stops a run or makes its figures worthless; a note is worth knowing.
    """

    name: str
    state: State
    detail: str
    remedy: str = ""


def ok(name: str, detail: str) -> Advice:
    """All is well."""
    return Advice(name=name, state="ok", detail=detail)


def problem(name: str, detail: str, remedy: str) -> Advice:
    """This stops a run, or makes its figures worthless."""
    return Advice(name=name, state="problem", detail=detail, remedy=remedy)


def note(name: str, detail: str, remedy: str = "") -> Advice:
    """This is worth knowing."""
    return Advice(name=name, state="note", detail=detail, remedy=remedy)
