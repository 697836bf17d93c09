"""A Python as a cluster's image has it: torch and what torch brings, and nothing of ours."""

import importlib.metadata
import venv
from pathlib import Path

from packaging.requirements import Requirement


def image_python(folder: Path, *packages: str) -> Path:
    """Make a venv whose only packages are torch, what it requires, and these: links to what is installed here."""
    venv.create(folder, with_pip=False, symlinks=True)
    (site,) = (folder / "lib").glob("python3*/site-packages")
    for name in _closure(["torch", *packages]):
        for entry in _entries(importlib.metadata.distribution(name)):
            (site / entry.name).symlink_to(entry)
    return folder / "bin" / "python"


def _closure(names: list[str]) -> set[str]:
    found: set[str] = set()
    while names:
        name = names.pop().lower()
        if name in found:
            continue
        found.add(name)
        stated = map(Requirement, importlib.metadata.requires(name) or ())
        names += [one.name for one in stated if one.marker is None or one.marker.evaluate({"extra": ""})]
    return found


def _entries(installed: importlib.metadata.Distribution) -> set[Path]:
    """What a distribution has at the top of site-packages."""
    tops = {file.parts[0] for file in installed.files or () if file.parts[0] not in ("..", "__pycache__")}
    return {Path(str(installed.locate_file(top))) for top in tops}
