"""hwlottery's own wheel: built from the checkout that this runs from, or packed again from where it is installed."""

import base64
import hashlib
import importlib.util
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from ..evidence import RunError

_BUILD_WITHIN_S = 300.0
_EPOCH = (1980, 1, 1, 0, 0, 0)
# What an installer adds beside what came in the wheel.
_OF_THE_INSTALLER = {"RECORD", "INSTALLER", "REQUESTED", "direct_url.json"}


def own_wheel(folder: Path) -> Path:
    """Make the wheel of the hwlottery that runs here, in a folder. Raises RunError."""
    checkout = Path(__file__).resolve().parents[1]
    if (checkout / "pyproject.toml").is_file():
        return _built(checkout, folder)
    try:
        return packed_again(distribution("hwlottery"), folder)
    except PackageNotFoundError:
        raise RunError(f"{checkout} is neither a checkout nor installed: install hwlottery with pip") from None


def _built(checkout: Path, folder: Path) -> Path:
    """The wheel by the build backend: the one that is installed here, else one that pip fetches."""
    isolation = ["--no-build-isolation"] if importlib.util.find_spec("hatchling") else []
    run_pip("wheel", "--no-deps", *isolation, "--wheel-dir", str(folder), str(checkout), within_s=_BUILD_WITHIN_S)
    (wheel,) = folder.glob("hwlottery-*.whl")
    return wheel


def packed_again(installed: Distribution, folder: Path) -> Path:
    """The wheel that an installed distribution came from, but for its compression: its files as its RECORD lists them.

    Files as they are now: nodes are to run what runs here.
    """
    contents = dict(_contents(installed))
    (meta,) = {name.partition("/")[0] for name in contents if name.endswith(".dist-info/METADATA")}
    lines = [f"{name},sha256={_digest(content)},{len(content)}" for name, content in contents.items()]
    record = "\n".join([*lines, f"{meta}/RECORD,,", ""])
    wheel = folder / f"{meta.removesuffix('.dist-info')}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as out:
        for name, content in [*contents.items(), (f"{meta}/RECORD", record.encode())]:
            out.writestr(zipfile.ZipInfo(name, _EPOCH), content, zipfile.ZIP_DEFLATED)
    return wheel


def _contents(installed: Distribution) -> Iterator[tuple[str, bytes]]:
    for file in sorted(installed.files or (), key=str):
        name = file.as_posix()
        ours = not name.startswith("../") and "__pycache__" not in file.parts
        if ours and not (file.parts[0].endswith(".dist-info") and file.parts[-1] in _OF_THE_INSTALLER):
            yield name, Path(str(file.locate())).read_bytes()


def _digest(content: bytes) -> str:
    """As RECORD writes it: URL-safe base64 without padding."""
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


def run_pip(*words: str, within_s: float) -> None:
    """Run this Python's pip. Raises RunError with what it said was wrong."""
    if importlib.util.find_spec("pip") is None:
        raise RunError(f"a bundle is made with pip, which {sys.executable} lacks: {sys.executable} -m ensurepip")
    command = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "--no-input", *words]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=within_s, check=False)
    except subprocess.TimeoutExpired:
        raise RunError(f"pip {words[0]} took longer than {within_s:.0f} s: is the package index reached?") from None
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.startswith("ERROR:")] or done.stderr.splitlines()
        said = lines[0].removeprefix("ERROR: ") if lines else f"exit {done.returncode}"
        raise RunError(f"pip {words[0]}: {said}"[:600])
