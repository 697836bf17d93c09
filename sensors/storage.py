"""Disks, and the filesystem that a path lies on."""

import os
from pathlib import Path

from msgspec import Struct

from .files import ROOT, Found, Unreadable, content_or_empty, entries, number, text

_SECTOR = 512  # /sys/block/*/size counts these, whatever the device's own sectors are


class Mount(Struct, frozen=True, kw_only=True):
    """One line of /proc/self/mountinfo."""

    point: str
    kind: str  # ext4, nfs4, lustre, tmpfs, overlay, …
    source: str
    options: str


def disks(root: Path = ROOT) -> dict[str, Found]:
    """Each disk with its size in bytes, its model and whether it spins: disk.nvme0n1.size and so on."""
    found: dict[str, Found] = {}
    for disk in entries(root / "sys/block"):
        if (disk / "device").exists():
            sectors = number(disk / "size")
            found[f"disk.{disk.name}.size"] = sectors if isinstance(sectors, Unreadable) else sectors * _SECTOR
            found[f"disk.{disk.name}.model"] = text(disk / "device/model")
            found[f"disk.{disk.name}.rotational"] = content_or_empty(disk / "queue/rotational") == "1"
            found[f"disk.{disk.name}.scheduler"] = text(disk / "queue/scheduler")
    return found


def scratch_facts(path: Path, root: Path = ROOT) -> dict[str, Found]:
    """What filesystem a path lies on, and how much is free there for us, in bytes."""
    mount = mount_of(path, parse_mountinfo(content_or_empty(root / "proc/self/mountinfo")))
    why = Unreadable(f"no mount is listed for {path}")
    return {
        "filesystem.kind": mount.kind if mount else why,
        "filesystem.source": mount.source if mount else why,
        "filesystem.mount": mount.point if mount else why,
        "filesystem.options": mount.options if mount else why,
        **{f"filesystem.{key}": value for key, value in _space(path).items()},
    }


def shared_memory() -> dict[str, Found]:
    """Size and free bytes of /dev/shm, which torch's data loaders and NCCL use."""
    return {f"shm.{key}": value for key, value in _space(Path("/dev/shm")).items() if key != "free_inodes"}  # noqa: S108  # looked at, not written


def _space(path: Path) -> dict[str, Found]:
    try:
        found = os.statvfs(path)
    except OSError as error:
        why = Unreadable(f"{error.strerror}: {path}")
        return {"size": why, "free": why, "free_inodes": why}
    # btrfs and some network filesystems have no inodes to count and say 0 of 0.
    inodes: Found = found.f_favail if found.f_files else Unreadable("this filesystem does not count inodes")
    return {"size": found.f_blocks * found.f_frsize, "free": found.f_bavail * found.f_frsize, "free_inodes": inodes}


def parse_mountinfo(mountinfo: str) -> list[Mount]:
    """The mounts of /proc/self/mountinfo, later ones lying over earlier ones.

    "36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue" (proc(5)).
    """
    mounts = []
    for line in mountinfo.splitlines():
        left, dash, right = line.partition(" - ")
        before, after = left.split(), right.split()
        if dash and len(before) >= 6 and len(after) >= 2:
            mounts.append(
                Mount(point=_unescaped(before[4]), kind=after[0], source=_unescaped(after[1]), options=before[5])
            )
    return mounts


def _unescaped(field: str) -> str:
    """The kernel writes blanks and backslashes in octal: /mnt/my\\040disk."""
    for code, sign in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        field = field.replace(code, sign)
    return field


def mount_of(path: Path, mounts: list[Mount]) -> Mount | None:
    """The mount a path lies on: the one with the longest mount point above it, the last of equals."""
    wanted = path.resolve()
    above = [mount for mount in mounts if wanted == Path(mount.point) or Path(mount.point) in wanted.parents]
    return max(enumerate(above), key=lambda entry: (len(entry[1].point), entry[0]))[1] if above else None
