"""What Kubernetes' API, or the kubelet behind it, would refuse: names, resources, images and places of volumes."""

import re
from collections.abc import Iterable
from pathlib import PurePosixPath

from ..evidence import RunError

# As k8s.io/apimachinery's validation has them: a label of RFC 1123, a subdomain of such, a qualified name.
_LABEL = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_SUBDOMAIN = re.compile(rf"(?=.{{1,253}}\Z){_LABEL}(?:\.{_LABEL})*")
_RESOURCE = re.compile(rf"(?=[^/]{{1,253}}/){_LABEL}(?:\.{_LABEL})*/[A-Za-z0-9](?:[A-Za-z0-9_.-]{{0,61}}[A-Za-z0-9])?")
_NAMESPACE = re.compile(_LABEL)
# With room for a pod's number and suffix; it is a Service's name too, which begins with a letter (RFC 1035).
_NAME = re.compile(r"[a-z](?:[a-z0-9-]{0,48}[a-z0-9])?")
_MOST_DEVICES = 1024  # of one kind in a pod; the shared RDMA plugin hands out up to a thousand
_LONGEST_PATH = 1024

# The grammar of github.com/distribution/reference: [domain[:port]/]path[:tag][@digest]
_DOMAIN_PART = r"(?:[A-Za-z0-9]|[A-Za-z0-9][A-Za-z0-9-]*[A-Za-z0-9])"
_DOMAIN = rf"(?:{_DOMAIN_PART}(?:\.{_DOMAIN_PART})*|\[[0-9A-Fa-f:]+\])(?::[0-9]{{1,5}})?"
_PATH_PART = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_TAG = r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}"
_DIGEST = r"[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9A-Fa-f]{32,128}"
_IMAGE = re.compile(rf"(?P<name>(?:{_DOMAIN}/)?{_PATH_PART}(?:/{_PATH_PART})*)(?::{_TAG})?(?:@{_DIGEST})?")
_LONGEST_IMAGE_NAME = 255


def check_names(name: str, namespace: str | None, image: str, python: str) -> None:
    """Raises RunError for what cannot be one."""
    if not _NAME.fullmatch(name):
        raise RunError(f"--name {shown(name)}: small letters, digits and '-', a letter first, 50 at most")
    if namespace is not None and not _NAMESPACE.fullmatch(namespace):
        raise RunError(f"--namespace {shown(namespace)}: small letters, digits and '-', 63 at most")
    found = _IMAGE.fullmatch(image) if len(image) < 1000 else None
    if found is None or len(found["name"]) > _LONGEST_IMAGE_NAME:
        raise RunError(f"--image {shown(image)}: no reference of an image, such as registry.example/team/image:1.0")
    if not python or any(c.isspace() or not c.isprintable() for c in python):
        raise RunError(f"--python {shown(python)}: give the name or the path of Python in the image")


def check_resource(option: str, name: str, count: str) -> int:
    """How many devices are asked for. Raises RunError for a resource or a count that cannot be."""
    if not _RESOURCE.fullmatch(name):
        raise RunError(f"{option} {shown(name)}: no name of a resource, such as nvidia.com/gpu")
    if name.partition("/")[0].endswith("kubernetes.io"):
        raise RunError(f"{option} {shown(name)}: kubernetes.io is Kubernetes' own, and has no devices")
    if not (count.isascii() and count.isdecimal() and len(count) <= 4 and 0 < int(count) <= _MOST_DEVICES):
        raise RunError(
            f"{option} {shown(name)}={shown(count)}: the count is no number of devices (1 to {_MOST_DEVICES})"
        )
    return int(count)


def check_volume(claim: str, path: str) -> None:
    """Raises RunError for a name that no claim can have, and for a place where none can be mounted."""
    told = f"--volume {shown(claim)}:{shown(path)}"
    if not _SUBDOMAIN.fullmatch(claim):
        raise RunError(f"{told}: {claim[:80]!r} is no name of a claim: small letters, digits, '-' and '.'")
    if not path.startswith("/"):
        raise RunError(f"{told}: the path begins with /")
    if path.strip("/") == "" or len(path) > _LONGEST_PATH or ":" in path or not path.isprintable():
        raise RunError(f"{told}: no path to mount at")
    if ".." in PurePosixPath(path).parts:
        raise RunError(f"{told}: the path has no .. in it")


def refuse_doubled(option: str, names: Iterable[str], taken: Iterable[str] = ()) -> None:
    """Raises RunError where a name stands twice, or is taken already."""
    seen = set(taken)
    for name in names:
        if name in seen:
            raise RunError(f"{option} {shown(name)}: it is there already")
        seen.add(name)


def shown(text: str) -> str:
    """A value as it stands in an error: what is long or would not print is quoted and cut."""
    return text if text.isprintable() and 0 < len(text) <= 80 else repr(text[:80])
