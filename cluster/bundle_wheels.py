"""Which wheels go into a bundle, and how they are fetched from the package index, also for another Python than ours."""

import importlib.metadata
import platform
import re
import zipfile
from collections.abc import Iterator
from email import message_from_string
from pathlib import Path

from ..evidence import RunError
from .own_wheel import run_pip

# What a node's worker, its ranks and its sensors import; pyproject.toml has their versions. All else is the head's.
NODE = ("distributed", "msgspec", "numpy", "nvidia-ml-py", "pebble", "psutil")
IMAGE_S_OWN = "torch"
_FETCH_WITHIN_S = 900.0
_PLATFORM = re.compile(r"manylinux_2_(?P<glibc>[0-9]{1,2})_(?P<machine>\w+)")
# manylinux's earlier names, by the glibc that they mean.
_OLD_NAMES = {17: "manylinux2014", 12: "manylinux2010", 5: "manylinux1"}


def default_platform() -> str:
    """Machines as this one, with a glibc as old as 2.28 (Debian 10, RHEL 8, Ubuntu 20.04)."""
    return f"manylinux_2_28_{platform.machine()}"


def platforms_of(name: str) -> list[str]:
    """The platform tags that fit a platform: its own and those of each older glibc. Raises RunError."""
    found = _PLATFORM.fullmatch(name)
    if found is None:
        raise RunError(f"--platform {name[:60]}: give one such as {default_platform()} or manylinux_2_28_aarch64")
    machine, newest = found["machine"], int(found["glibc"])
    tags = []
    for glibc in range(newest, 4, -1):
        tags.append(f"manylinux_2_{glibc}_{machine}")
        if glibc in _OLD_NAMES:
            tags.append(f"{_OLD_NAMES[glibc]}_{machine}")
    return tags


def requirements_of(own: Path, *, head: bool) -> list[str]:
    """What the wheel itself says that it requires, without torch: all for a head, else what nodes import."""
    from packaging.requirements import Requirement
    from packaging.utils import canonicalize_name

    wanted = {canonicalize_name(name) for name in NODE}
    stated = (Requirement(text) for text in metadata_of(own).get_all("Requires-Dist") or ())
    always = [requirement for requirement in stated if "extra" not in str(requirement.marker)]
    return [
        str(requirement)
        for requirement in always
        if (name := canonicalize_name(requirement.name)) != IMAGE_S_OWN and (head or name in wanted)
    ]


def fetch(requirements: list[str], folder: Path, python: str, platforms: list[str]) -> None:
    """Fetch wheels until none is missing. pip reads conditions on the Python version as of the Python that it runs in,
    so for another one what it left out is asked for by name."""
    fits = ["--python-version", python, "--implementation", "cp", *(f"--platform={name}" for name in platforms)]
    pins = folder / "constraints.txt"
    pins.write_text("".join(f"{line}\n" for line in _installed()))
    asked: set[str] = set()
    while missing := [text for text in requirements if text not in asked]:
        words = ("--only-binary=:all:", "--dest", str(folder), "--constraint", str(pins), *fits, *missing)
        run_pip("download", *words, within_s=_FETCH_WITHIN_S)
        asked.update(missing)
        requirements = list(unmet(folder, python))
    pins.unlink()


def _installed() -> Iterator[str]:
    """What is installed here, as pins: head and nodes must understand each other. Local versions are on no index."""
    for found in importlib.metadata.distributions():
        name, version = found.metadata["Name"], found.version
        if name and name.lower() not in ("hwlottery", IMAGE_S_OWN) and "+" not in version:
            yield f"{name}=={version}"


def unmet(folder: Path, python: str) -> Iterator[str]:
    """What the fetched wheels require for this Python, and none of them is."""
    from packaging.requirements import Requirement
    from packaging.utils import canonicalize_name

    files = [file for file in folder.glob("*.whl") if not file.name.startswith("hwlottery-")]
    here = {canonicalize_name(file.name.partition("-")[0]) for file in files}
    target = {"python_version": python, "python_full_version": f"{python}.0", "extra": ""}
    for file in files:
        for requirement in map(Requirement, metadata_of(file).get_all("Requires-Dist") or ()):
            applies = requirement.marker is None or requirement.marker.evaluate(target)
            if applies and canonicalize_name(requirement.name) not in here:
                requirement.marker = None
                yield str(requirement)


def metadata_of(wheel: Path) -> importlib.metadata.PackageMetadata:
    with zipfile.ZipFile(wheel) as opened:
        (name,) = (name for name in opened.namelist() if re.fullmatch(r"[^/]+\.dist-info/METADATA", name))
        text = opened.read(name).decode()
    found: importlib.metadata.PackageMetadata = message_from_string(text)  # type: ignore[assignment]  # it is a Message
    return found
