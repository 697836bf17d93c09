"""What sbatch would refuse, or a script hold as more than a value: a time limit, partitions, a command for Python."""

import re
import shlex

from ..evidence import RunError

# man sbatch: minutes, minutes:seconds, hours:minutes:seconds, or days-hours, which minutes and seconds may follow.
_TIME = re.compile(r"\d{1,7}(?::\d{1,2}){0,2}|\d{1,5}-\d{1,3}(?::\d{1,2}){0,2}|(?i:unlimited|infinite)", re.ASCII)
_PARTITION = re.compile(r"[\w@+][\w.:@+-]{0,127}", re.ASCII)
_MOST_PARTITIONS = 64
_OF_A_SHELL = frozenset(";&|<>()`\n\r")


def check_slurm(*, time: str, partition: str | None, python: str | None) -> None:
    """Raises RunError for a value that Slurm would not take, or that would be more than a value in a script."""
    if not _TIME.fullmatch(time):
        raise RunError(f"--time {time[:80]!r}: give Slurm's, such as 90 (minutes), 04:00:00 or 1-12 (days and hours)")
    names = (partition or "").split(",")
    if partition is not None and not (len(names) <= _MOST_PARTITIONS and all(map(_PARTITION.fullmatch, names))):
        raise RunError(f"--partition {partition[:80]!r}: no name of a partition, or several with commas between them")
    if python is not None and not _is_command(python):
        raise RunError(f"--python {python[:80]!r}: no command: words, paths and variables alone")


def _is_command(text: str) -> bool:
    """Whether a shell reads a text as the words of one command. Variables and ~ are the nodes' own, and stay."""
    try:
        return bool(shlex.split(text)) and text.isprintable() and not _OF_A_SHELL & set(text)
    except ValueError:  # a quotation without its end
        return False
