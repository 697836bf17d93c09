"""What a bundle does on a node: check itself, unpack into a folder of its own, run from there, and remove the folder.

A bundle is a zip that Python runs: this file is its __main__.py, beside manifest.json and wheels/. Two ways in:

    python3 BUNDLE [--once] -m hwlottery ...                    --once: the bundle's file is removed, too
    python3 -c THIS receive SIZE SHA256 PYTHON PLATFORM -m ...  the bundle comes on stdin, before what the command reads

No pip and no venv: an image may lack both, and a venv over a venv does not see the torch of the lower one. The wheels
are unpacked and put first on PYTHONPATH of the image's own Python. A node has nothing of ours yet when this runs, so
it needs the standard library alone, and any Python 3.7 reads it, if only to say that it is too old.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import io
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path, PurePosixPath
from typing import Any

# What begins the last words of a node that differs from what the head wants.
UNLIKE = "unlike the head: "
_PLACES = ("/var/tmp", "/dev/shm")  # noqa: S108  # where a folder of our own is made if the usual place is no good
_UNPACKED = 5  # what a bundle takes while it is unpacked, and its compiled code later, as a multiple of its size
_STOPPING = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
# What is stopped has this long to end, as whoever stops it signals all its processes; Slurm kills after 30 s.
_GRACE_S = 15


class Refused(Exception):
    """The bundle cannot be used here; the message is one line."""


def refuse_unfit(python: str, where: str) -> None:
    """Raises Refused where this Python, machine or C library is not what the bundle was made for; `where` is a platform
    such as manylinux_2_28_x86_64."""
    own = "{}.{}".format(*sys.version_info[:2])
    if own != python or sys.implementation.name != "cpython":
        raise Refused(
            f"{UNLIKE}has Python {platform.python_version()} ({sys.executable}), and the bundle is for {python}: make "
            f"one with hwlottery bundle --python {own}, or name another with --remote-python"
        )
    _, major, minor, machine = where.split("_", 3)
    library, version = platform.libc_ver()
    old = library == "glibc" and [int(part) for part in version.split(".")[:2]] < [int(major), int(minor)]
    if platform.machine() != machine or old:
        raise Refused(
            f"{UNLIKE}is {platform.machine()} with {library} {version}, and the bundle is for {where}: make one with "
            "hwlottery bundle --platform"
        )
    if sys.flags.ignore_environment:
        raise Refused(f"{sys.executable} was started with -I or -E, and a bundle needs PYTHONPATH")


def new_folder(room: int) -> Path:
    """A new folder, closed to others, with this many bytes free, from which code may be loaded: /tmp may be mounted
    noexec, or be small. Raises Refused."""
    for place in (tempfile.gettempdir(), *_PLACES):
        with contextlib.suppress(OSError):
            found = os.statvfs(place)
            if not found.f_flag & os.ST_NOEXEC and found.f_bavail * found.f_frsize >= room:
                return Path(tempfile.mkdtemp(prefix="hwlottery-bundle-", dir=place))
    places = ", ".join((tempfile.gettempdir(), *_PLACES))
    raise Refused(f"nowhere to unpack {room / 1e6:.0f} MB that is writable and not noexec: {places}; or set TMPDIR")


def receive(size: int, sha256: str, archive: Path) -> None:
    """Write the bundle that comes first on stdin to a file. What follows it is left there. Raises Refused."""
    digest = hashlib.sha256()
    with archive.open("xb") as out:
        while size:
            part = os.read(0, min(size, 1 << 20))
            if not part:
                raise Refused(f"the bundle broke off, with {size} bytes to come")
            digest.update(part)
            out.write(part)
            size -= len(part)
    if digest.hexdigest() != sha256:
        raise Refused("the bundle was damaged on its way")


def unpack(archive: Path, site: Path) -> None:
    """Check each wheel of a bundle and unpack it. Raises Refused before anything of a damaged one is written."""
    with zipfile.ZipFile(archive) as bundle:
        manifest: dict[str, Any] = json.loads(bundle.read("manifest.json"))
        refuse_unfit(manifest["python"], manifest["platform"])
        for wheel in manifest["wheels"]:
            content = bundle.read("wheels/" + wheel["file"])
            if hashlib.sha256(content).hexdigest() != wheel["sha256"]:
                raise Refused(f"{wheel['file']} in the bundle is not what its manifest says: make the bundle again")
            if not wheel["unless"] or importlib.util.find_spec(wheel["unless"]) is None:
                _unpack_wheel(content, site)


def _unpack_wheel(content: bytes, site: Path) -> None:
    with zipfile.ZipFile(io.BytesIO(content)) as wheel:
        for item in wheel.infolist():
            place = _place_of(item.filename)
            if place is None or item.is_dir():
                continue
            file = site.joinpath(place)
            file.parent.mkdir(parents=True, exist_ok=True)
            with wheel.open(item) as source, file.open("wb") as out:
                shutil.copyfileobj(source, out)


def _place_of(name: str) -> PurePosixPath | None:
    """Where a wheel's file belongs below site-packages; None for scripts and headers. Raises Refused for a path that
    leads out of there."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or "\\" in name:
        raise Refused(f"a path in the bundle leads out of it: {name!r}")
    if path.parts and path.parts[0].endswith(".data"):
        return PurePosixPath(*path.parts[2:]) if path.parts[1:2] in (("purelib",), ("platlib",)) else None
    return path


def run_from(site: Path, folder: Path, words: list[str]) -> int:
    """Run Python with these words from what was unpacked, and wait for it; its exit code, as a shell says it."""
    paths = [str(site), *filter(None, [os.environ.get("PYTHONPATH")])]
    child = subprocess.Popen([sys.executable, *words], env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)})

    def too_late(*_: Any) -> None:
        child.kill()
        shutil.rmtree(folder, ignore_errors=True)  # now: a child in the kernel may never end

    signal.signal(signal.SIGALRM, too_late)
    for number in _STOPPING[:2]:
        signal.signal(number, lambda *_: signal.alarm(_GRACE_S))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the child, which decides
    code = child.wait()
    return code if code >= 0 else 128 - code


def _stop(number: int, _: Any) -> None:
    sys.exit(128 + number)


def main(words: list[str]) -> int:
    """Run the command from the bundle. Whatever happens, the folder is removed."""
    for number in _STOPPING:
        signal.signal(number, _stop)
    folder = None
    try:
        pushed = words[:1] == ["receive"]
        if pushed:
            refuse_unfit(words[3], words[4])  # before the bundle is taken in
        size = int(words[1]) if pushed else Path(__file__).parent.stat().st_size
        folder = new_folder(size * _UNPACKED)
        archive = folder / "bundle" if pushed else Path(__file__).parent
        if pushed:
            receive(size, words[2], archive)
            words = words[5:]
        unpack(archive, folder / "site")
        if pushed or words[:1] == ["--once"]:
            archive.unlink()
        if words[:1] == ["--once"]:
            words = words[1:]
            with contextlib.suppress(OSError):
                archive.parent.rmdir()  # it was made for the bundle, if it is empty now
        return run_from(folder / "site", folder, words)
    except (Refused, OSError, zipfile.BadZipFile, KeyError, ValueError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    finally:
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
