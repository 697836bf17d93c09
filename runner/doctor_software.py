"""doctor's look at the software: Python, torch, the driver, fio, TLS."""

import importlib.util
import platform
import shutil
import ssl
import subprocess
import sys

from ..sensors.files import Unreadable
from ..sensors.nvml import Nvml, as_text
from .advice import Advice, note, ok, problem

_OLDEST_PYTHON = (3, 11)
_TORCH_PATIENCE_S = 120.0


def python_version(version: tuple[int, ...]) -> Advice:
    """3.11 or newer."""
    if version < _OLDEST_PYTHON:
        return problem("python", f"{'.'.join(map(str, version))} is too old", "install Python 3.11 or newer")
    return ok("python", platform.python_version())


def driver(nvml: Nvml | Unreadable | None) -> Advice:
    """NVIDIA's driver: working, absent, or there and failing."""
    if nvml is None:
        return note("accelerators", "no NVIDIA GPU: a run measures the CPUs, with gloo")
    if isinstance(nvml, Unreadable):
        return problem("accelerators", nvml.why, "nvidia-smi should name the fault; reload the driver or reboot")
    version = as_text(nvml.ask("nvmlSystemGetDriverVersion"))
    detail = "version unreadable" if isinstance(version, Unreadable) else f"driver {version}"
    return ok("accelerators", f"{nvml.count} GPUs, {detail}")


def ask_torch() -> str | Unreadable:
    """ "VERSION CUDA DEVICES" as torch says it in a process of its own: loading it may fail, crash or hang."""
    if importlib.util.find_spec("torch") is None:
        return Unreadable("torch is not installed")
    script = "import torch; print(torch.__version__, torch.version.cuda, torch.cuda.device_count())"
    try:
        done = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, timeout=_TORCH_PATIENCE_S, check=False
        )
    except subprocess.TimeoutExpired:
        return Unreadable(f"importing torch took more than {_TORCH_PATIENCE_S:.0f} s")
    if done.returncode:
        said = done.stderr.strip().splitlines()
        return Unreadable(f"import torch failed: {said[-1] if said else f'exit {done.returncode}'}")
    return done.stdout.strip()


def torch_build(said: str | Unreadable, gpus: bool) -> Advice:
    """torch loads, and sees the GPUs where there are some."""
    if isinstance(said, Unreadable):
        return problem("torch", said.why, "pip install torch (see the README for the build that fits)")
    version, cuda, devices = said.split()
    if gpus and cuda == "None":
        return problem("torch", f"{version} is built without CUDA, and here are GPUs", "install torch's CUDA build")
    if gpus and devices == "0":
        return problem("torch", f"{version} (CUDA {cuda}) sees no GPU", "the driver may be older than torch's CUDA")
    return ok("torch", version if cuda == "None" else f"{version}, CUDA {cuda}, {devices} GPUs")


def fio() -> Advice:
    """fio is there, for the filesystem probe."""
    if shutil.which("fio") is None:
        return problem("fio", "not installed: the filesystem is then not measured", "apt-get install fio")
    done = subprocess.run(["fio", "--version"], capture_output=True, text=True, timeout=20, check=False)
    return ok("fio", done.stdout.strip() or "installed")


def tls() -> Advice:
    """What the control plane is encrypted with."""
    if importlib.util.find_spec("cryptography") is None:
        return problem("TLS", "the package cryptography is not installed", "pip install cryptography")
    if not ssl.HAS_TLSv1_2:
        return problem("TLS", f"{ssl.OPENSSL_VERSION} has no TLS 1.2", "use a Python with a newer OpenSSL")
    return ok("TLS", ssl.OPENSSL_VERSION)
