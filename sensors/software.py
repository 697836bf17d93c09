"""Versions of what a figure depends on, found without importing torch."""

import importlib.metadata
import importlib.util
import platform
import re
from pathlib import Path

from .files import ROOT, Unreadable, content_or_empty
from .host import parse_os_release

_LIBRARY_FOLDERS = ("usr/lib/*-linux-gnu", "usr/lib64", "usr/local/lib", "usr/local/cuda/lib64")
_PACKAGES = ("torch", "numpy", "distributed", "nvidia-ml-py", "msgspec", "triton")


def software_versions(root: Path = ROOT) -> dict[str, str]:
    """The software of this node by name. What is not installed is not in it."""
    found = {name: _version(name) for name in _PACKAGES}
    found["python"] = platform.python_version()
    found["kernel"] = platform.release()
    system = parse_os_release(content_or_empty(root / "etc/os-release"))
    found["os"] = None if isinstance(system, Unreadable) else system
    found["driver"] = parse_driver(content_or_empty(root / "proc/driver/nvidia/version"))
    found["cuda"] = torch_cuda()
    found["nccl"] = nccl(root)
    return {name: version for name, version in sorted(found.items()) if version}


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def parse_driver(version: str) -> str | None:
    """The driver's version in /proc/driver/nvidia/version, of its proprietary and its open form.

    "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5 22:23:56 UTC 2024"
    "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.86.15  Release Build  (…)"
    """
    found = re.search(r"Kernel Module(?: for \S+)?\s+(\d+\.\d+(?:\.\d+)?)\s", version)
    return found[1] if found else None


def torch_cuda() -> str | None:
    """The CUDA version that torch was built for, read from its version.py: importing torch takes seconds."""
    found = importlib.util.find_spec("torch")
    if found is None or found.origin is None:
        return None
    return parse_torch_version(content_or_empty(Path(found.origin).with_name("version.py")))


def parse_torch_version(version_py: str) -> str | None:
    """The CUDA version in torch/version.py ("cuda: Optional[str] = '12.8'"), None for a build without CUDA."""
    found = re.search(r"^cuda\b[^=\n]*=\s*'([0-9.]+)'", version_py, re.MULTILINE)
    return found[1] if found else None


def nccl(root: Path = ROOT) -> str | None:
    """The version of NCCL: of NVIDIA's package that torch brings, else of the system's library, as images have it.
    A torch that has NCCL built in tells it itself."""
    packaged = [_version(f"nvidia-nccl-cu{major}") for major in (11, 12, 13)]
    installed = [file for folder in _LIBRARY_FOLDERS for file in sorted(root.glob(f"{folder}/libnccl.so.2"))]
    return next(filter(None, [*packaged, *map(_library_version, installed)]), None)


def _library_version(library: Path) -> str | None:
    """2.21.5 of a link libnccl.so.2 -> libnccl.so.2.21.5."""
    found = re.fullmatch(r"libnccl\.so\.(\d+\.\d+\.\d+)", library.resolve().name)
    return found[1] if found else None
