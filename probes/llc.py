"""How much must be written to push everything else out of the last-level cache."""

from __future__ import annotations

from pathlib import Path

MIB = 1 << 20
# Blackwell's L2 is 126 MB and MI300X's Infinity Cache 256 MiB (stas00/ml-engineering, mamf-finder).
ON_DEVICE = 256 * MIB
_UNKNOWN = 128 * MIB  # where Linux does not tell: twice the cache of most server CPUs
_UNIT = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def cache_flush_bytes(on_cuda: bool, root: Path = Path("/sys/devices/system/cpu/cpu0/cache")) -> int:
    """Bytes to zero: 256 MiB on an accelerator, twice the last-level cache on a CPU (at most 512 MiB)."""
    if on_cuda:
        return ON_DEVICE
    size = last_level_cache_bytes(root)
    return _UNKNOWN if size is None else min(2 * size, 512 * MIB)


def last_level_cache_bytes(root: Path = Path("/sys/devices/system/cpu/cpu0/cache")) -> int | None:
    """The CPU's largest cache in bytes, or None where Linux does not tell."""
    sizes = [size for file in root.glob("index*/size") if (size := _size(file)) is not None]
    return max(sizes, default=None)


def _size(file: Path) -> int | None:
    try:
        text = file.read_text().strip()
    except OSError:
        return None
    number, unit = (text[:-1], _UNIT[text[-1]]) if text[-1:] in _UNIT else (text, 1)
    return int(number) * unit if number.isdigit() else None
