"""How far a tenant sees: the access tier of a node, found by what may be done here, not by who we are."""

import os
import re
from pathlib import Path

from msgspec import Struct

from ..evidence import Tier
from .files import ROOT, Found, content_or_empty, entries, text

_CAP_SYS_ADMIN = 21  # linux/capability.h; mounting needs it
_CONTAINER_WORDS = ("docker", "kubepods", "libpod", "lxc", "containerd", "crio")
# DMI vendors and products of virtual machines, for processors without the x86 hypervisor flag. Amazon's bare metal
# carries Amazon's name too, so a vendor alone says nothing there.
_VIRTUAL_PRODUCTS = ("kvm", "qemu", "virtual machine", "vmware", "virtualbox", "google compute engine", "openstack")


class Access(Struct, frozen=True, kw_only=True):
    """What may be seen and done. `container_signs` are words for what shows a container; `kernel_threads` is None
    where /proc hides other users' processes and so tells nothing."""

    kernel_log: bool
    pci_tree: bool
    may_mount: bool
    kernel_threads: bool | None
    virtual: bool
    container_signs: tuple[str, ...]

    @property
    def privileged(self) -> bool:
        """May read the kernel log and may mount."""
        return self.kernel_log and self.may_mount

    @property
    def confined(self) -> bool:
        """Whether a container's walls are there.

        Where the kernel's own threads are seen, one sign alone is a leftover: /.dockerenv in a machine made from an
        image, an overlay as root on a diskless node. Both together are a container in the host's PID namespace, which
        is no wall where everything is allowed.
        """
        if self.kernel_threads is not True:
            return self.kernel_threads is False or bool(self.container_signs)
        return len(self.container_signs) > 1 and not (self.privileged and self.pci_tree)

    @property
    def tier(self) -> Tier:
        """The tier these capabilities amount to."""
        if self.confined:
            return "container-root" if self.privileged else "container"
        if self.virtual:
            return "vm-root" if self.privileged else "vm"
        return "bare-root" if self.privileged else "bare"


def access_tier(root: Path = ROOT) -> Tier:
    """The access tier of this node."""
    return access(root).tier


def access(root: Path = ROOT) -> Access:
    """Look at what may be seen and done here. Nothing is changed."""
    return Access(
        kernel_log=_kernel_log_readable(root / "dev/kmsg"),
        pci_tree=bool(entries(root / "sys/bus/pci/devices")),
        may_mount=may_mount(content_or_empty(root / "proc/self/status"), content_or_empty(root / "proc/self/uid_map")),
        kernel_threads=_sees_kernel_threads(root),
        virtual=is_virtual(root),
        container_signs=container_signs(root),
    )


def access_facts(seen: Access) -> dict[str, Found]:
    """The tier and what it was found by."""
    return {
        "node.tier": seen.tier,
        "access.kernel_log": seen.kernel_log,
        "access.pci_tree": seen.pci_tree,
        "access.mount": seen.may_mount,
        "access.virtual": seen.virtual,
        "access.container_signs": ", ".join(seen.container_signs) or "none",
    }


def _kernel_log_readable(device: Path) -> bool:
    """Reading needs CAP_SYSLOG or an open dmesg_restrict; opening alone may succeed without."""
    try:
        opened = os.open(device, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        os.read(opened, 8192)
    except BlockingIOError:
        return True  # nothing to read, and allowed to
    except BrokenPipeError:
        return True  # the oldest record was overwritten just then
    except OSError:
        return False
    finally:
        os.close(opened)
    return True


def may_mount(status: str, uid_map: str) -> bool:
    """Whether /proc/self/status has CAP_SYS_ADMIN in force, in the machine's own user namespace: in another one it
    reaches no device."""
    effective = re.search(r"^CapEff:\s*([0-9a-f]{1,16})$", status, re.MULTILINE)
    capable = effective is not None and bool(int(effective[1], 16) >> _CAP_SYS_ADMIN & 1)
    return capable and uid_map.split() == ["0", "0", "4294967295"]


def _sees_kernel_threads(root: Path) -> bool | None:
    """Process 2 is kthreadd, except in a PID namespace. None where /proc is mounted with hidepid."""
    mounts = content_or_empty(root / "proc/self/mountinfo")
    hidden = any(" /proc " in line and "hidepid=" in line and "hidepid=off" not in line for line in mounts.splitlines())
    name = text(root / "proc/2/comm")
    if name == "kthreadd":
        return True
    return None if hidden or not mounts else False


def is_virtual(root: Path = ROOT) -> bool:
    """Whether this kernel runs in a virtual machine."""
    flags = [line for line in content_or_empty(root / "proc/cpuinfo").splitlines() if line.startswith("flags")]
    if flags:
        return "hypervisor" in flags[0].split()
    product = content_or_empty(root / "sys/class/dmi/id/product_name").lower()
    vendor = content_or_empty(root / "sys/class/dmi/id/sys_vendor").lower()
    named = any(word in product or word == vendor for word in _VIRTUAL_PRODUCTS)
    return named or (root / "sys/hypervisor/type").exists() or (root / "proc/device-tree/hypervisor").exists()


def container_signs(root: Path = ROOT) -> tuple[str, ...]:
    """What shows that this is, or was made from, a container."""
    signs = [f"/{name}" for name in ("run/.containerenv", ".dockerenv") if (root / name).exists()]
    groups = content_or_empty(root / "proc/1/cgroup")
    signs += [f"cgroup {word}" for word in _CONTAINER_WORDS if word in groups]
    mounts = content_or_empty(root / "proc/self/mountinfo").splitlines()
    if any(line.split()[4:5] == ["/"] and " - overlay " in line for line in mounts):
        signs.append("overlay root")
    return tuple(signs)
