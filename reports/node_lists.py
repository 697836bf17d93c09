"""Nodes as schedulers and launchers take them: those to leave out, and those that remain. Printed, never acted on."""

from msgspec import Struct

from ..evidence import HwlotteryError, Run, parse_subject
from ..scoring.out_of_use import nodes_out
from ..scoring.verdict import EXIT_CODES, Verdict
from .first_screen import WORDS
from .plain_text import listed, natural, printable


class NoNodeList(HwlotteryError):
    """No list can be given; the message says why, and the exit code is the verdict's where that is the reason."""

    def __init__(self, message: str, exit_code: int = 2) -> None:
        super().__init__(message)
        self.exit_code = exit_code


class NodeList(Struct, frozen=True, kw_only=True):
    """A list as text that ends with a line end, and what whoever uses it should know."""

    text: str
    notes: tuple[str, ...] = ()


def exclude(run: Run, verdict: Verdict) -> NodeList:
    """The nodes to leave out, for `srun --exclude=`: names with commas between, or an empty line.

    Given whatever the verdict, for leaving nodes out is safe; a note says where those that remain are not shown to be
    fit. Raises NoNodeList for names that would be more than a name to a scheduler.
    """
    out = sorted(_taken_out(run, verdict), key=natural)
    return NodeList(text=",".join(out) + "\n", notes=tuple(_notes(verdict)))


def hostfile(run: Run, verdict: Verdict) -> NodeList:
    """The nodes that remain, with as many slots as each has accelerators, as Open MPI and DeepSpeed read them.

    A hostfile says "run here": where the verdict does not say so (NO-GO, INCONCLUSIVE) there is none, whatever
    remains. Raises NoNodeList then, with the verdict's exit code.
    """
    if verdict.verdict not in ("GO", "CONDITIONAL"):
        raise NoNodeList(
            f"no hostfile: the verdict is {WORDS[verdict.verdict]}, so that no node is shown to be fit; "
            f"what to leave out: --format exclude ({printable(verdict.sentence, 300)})",
            EXIT_CODES[verdict.verdict],
        )
    out = _taken_out(run, verdict)
    kept = [node for node in run.header.promised if node.node not in out]
    lines = [f"{node.node} slots={len(node.ranks)}\n" for node in kept]
    return NodeList(text="".join(lines), notes=tuple(_notes(verdict)))


def _notes(verdict: Verdict) -> list[str]:
    if verdict.verdict not in ("GO", "CONDITIONAL"):
        return [f"the verdict is {WORDS[verdict.verdict]}: nodes that are not in the list are not shown to be fit"]
    notes = [] if verdict.signable else [f"the verdict is {WORDS[verdict.verdict]}, and not for signing"]
    parts = [printable(each, 200) for each in verdict.exclude if _kind(each) != "node"]
    return [*notes, f"left out with their whole node: {listed(parts)}"] if parts else notes


def _taken_out(run: Run, verdict: Verdict) -> frozenset[str]:
    """The nodes to leave out, by names that are names."""
    _refuse_odd_names(run)
    return nodes_out(verdict.exclude)


def _refuse_odd_names(run: Run) -> None:
    """A run may be anybody's: a name with a comma, a blank or a line end would be several, or an option."""
    odd = [node.node for node in run.header.promised if _kind(node.node) != "node"]
    if odd:
        raise NoNodeList(f"no list: {listed(repr(name[:60]) for name in odd)} cannot be a node's name")


def _kind(subject: str) -> str:
    try:
        return parse_subject(subject).kind
    except ValueError:
        return "other"
