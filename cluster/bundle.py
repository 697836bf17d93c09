"""The bundle: one file that brings hwlottery onto nodes that have none, and no registry within reach.

A zip that Python runs (cluster.bundle_main says how), with a manifest and wheels: ours, and those of its dependencies
without torch, in the versions that are installed here.
"""

import hashlib
import re
import sys
import tempfile
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec
from msgspec import Struct

from .. import __version__
from ..evidence import RunError
from ..evidence.plain_files import NotPlain, must_be_plain
from .bundle_wheels import default_platform, fetch, platforms_of, requirements_of
from .own_wheel import own_wheel

# The image's numpy is what its torch was built with: ours is for an image that has none.
_UNLESS = {"numpy": "numpy"}

_FORMAT = 1
_EPOCH = (1980, 1, 1, 0, 0, 0)
_MOST_MANIFEST = 1 << 20
_WHEEL_NAME = re.compile(r"[A-Za-z0-9_.+-]+\.whl")


class Wheel(Struct, frozen=True, kw_only=True):
    """A wheel of a bundle. `unless` is a module that, where the node's image has it, is kept in the wheel's place."""

    file: str
    name: str
    version: str
    sha256: str
    unless: str | None = None


class Manifest(Struct, frozen=True, kw_only=True):
    """What a bundle holds and where it fits. `head` says that it holds what the head of a run needs, too."""

    format: int
    hwlottery: str
    python: str
    platform: str
    head: bool
    wheels: tuple[Wheel, ...]


class Bundle(Struct, frozen=True, kw_only=True):
    """A bundle that was found whole. `size` in bytes."""

    path: Path
    manifest: Manifest
    size: int
    sha256: str


def default_name(python: str | None = None, where: str | None = None, *, head: bool = False) -> str:
    """The name of a bundle's file, which tells what it is for."""
    part = "-head" if head else ""
    return f"hwlottery{part}-{__version__}-py{python or _own_python()}-{where or default_platform()}.pyz"


def make_bundle(output: Path, *, python: str | None = None, where: str | None = None, head: bool = False) -> Bundle:
    """Make a bundle for nodes with this Python ("3.12") and platform; by default those here.

    With `head` it holds what the head needs, too: for a run inside a scheduler, whose head is one of the nodes.
    Raises RunError where something is not to be had.
    """
    python, where = python or _own_python(), where or default_platform()
    platforms = platforms_of(where)
    if not re.fullmatch(r"3\.[0-9]{1,2}", python):
        raise RunError(f"--python {python[:40]}: give a version such as 3.12")
    with tempfile.TemporaryDirectory(prefix="hwlottery-bundle-") as place:
        folder = Path(place)
        own = own_wheel(folder)
        fetch(requirements_of(own, head=head), folder, python, platforms)
        wheels = tuple(_wheel(file) for file in sorted(folder.glob("*.whl")))
        manifest = Manifest(
            format=_FORMAT,
            hwlottery=_version_of(own),
            python=python,
            platform=where,
            head=head,
            wheels=wheels,
        )
        _write(output, manifest, folder)
    return load_bundle(output)


def _own_python() -> str:
    return f"{sys.version_info[0]}.{sys.version_info[1]}"


def _version_of(wheel: Path) -> str:
    return wheel.name.split("-")[1]


def _wheel(file: Path) -> Wheel:
    name = file.name.partition("-")[0]
    sha256 = hashlib.sha256(file.read_bytes()).hexdigest()
    return Wheel(file=file.name, name=name, version=_version_of(file), sha256=sha256, unless=_UNLESS.get(name))


def _write(output: Path, manifest: Manifest, folder: Path) -> None:
    """Write the file whole or not at all. The same wheels give the same bytes."""
    main = Path(__file__).with_name("bundle_main.py").read_bytes()
    own = [("__main__.py", main), ("manifest.json", msgspec.json.format(msgspec.json.encode(manifest)))]
    part = output.with_name(f"{output.name}.part")
    try:
        with zipfile.ZipFile(part, "w") as out:
            for name, content in own:
                out.writestr(zipfile.ZipInfo(name, _EPOCH), content)
            for wheel in manifest.wheels:
                out.writestr(zipfile.ZipInfo(f"wheels/{wheel.file}", _EPOCH), (folder / wheel.file).read_bytes())
        part.replace(output)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise RunError(f"{output}: {error.strerror}") from error


def load_bundle(path: Path) -> Bundle:
    """A bundle, each wheel checked against its manifest. Raises RunError, one line, where it is none or damaged."""
    try:
        must_be_plain(path)
        with zipfile.ZipFile(path) as opened:
            manifest = _manifest(opened)
            damaged = list(_damaged(opened, manifest.wheels))
        with path.open("rb") as whole:
            digest = hashlib.file_digest(whole, "sha256")
        size = path.stat().st_size
    except NotPlain as error:
        raise RunError(f"{path}: {error}") from error
    except OSError as error:
        raise RunError(f"{path}: {error.strerror}") from error
    except (zipfile.BadZipFile, KeyError, ValueError, NotImplementedError, RuntimeError, EOFError) as error:
        raise RunError(f"{path} is no whole bundle ({error}): make it again with hwlottery bundle") from None
    if damaged:
        raise RunError(f"{path} is damaged ({', '.join(damaged[:3])}): make it again with hwlottery bundle")
    if manifest.hwlottery != __version__:
        raise RunError(f"{path} is of hwlottery {manifest.hwlottery}, and this is {__version__}: make it again")
    return Bundle(path=path, manifest=manifest, size=size, sha256=digest.hexdigest())


def load_for_head(path: Path) -> Bundle:
    """A bundle with which a node may be the head of a run. Raises RunError."""
    bundle = load_bundle(path)
    if not bundle.manifest.head:
        raise RunError(f"{path} has no head's part, and inside a scheduler a node leads: make it with bundle --head")
    return bundle


def _manifest(opened: zipfile.ZipFile) -> Manifest:
    """Raises KeyError, or ValueError (as msgspec's errors are)."""
    if opened.getinfo("manifest.json").file_size > _MOST_MANIFEST:
        raise ValueError("its manifest is too large")
    manifest = msgspec.json.decode(opened.read("manifest.json"), type=Manifest)
    if manifest.format != _FORMAT:
        raise ValueError(f"its format is {manifest.format}, not {_FORMAT}")
    return manifest


def _damaged(opened: zipfile.ZipFile, wheels: Iterable[Wheel]) -> Iterator[str]:
    """Files that are not what the manifest says. Stored ones alone: nothing unpacks to more than the file's size."""
    expected = {"__main__.py", "manifest.json", *(f"wheels/{wheel.file}" for wheel in wheels)}
    yield from sorted(set(opened.namelist()) ^ expected)
    own = Path(__file__).with_name("bundle_main.py").read_bytes()
    if opened.getinfo("__main__.py").file_size != len(own) or opened.read("__main__.py") != own:
        yield "__main__.py"
    for wheel in wheels:
        item = opened.getinfo(f"wheels/{wheel.file}")
        plain = _WHEEL_NAME.fullmatch(wheel.file) and item.compress_type == zipfile.ZIP_STORED
        if not plain or hashlib.sha256(opened.read(item)).hexdigest() != wheel.sha256:
            yield wheel.file
