"""Subjects: the things a record speaks of, written as people write them.

cluster                 the whole rental
domain:D3               an NVLink domain such as an NVL72 rack
n03                     a node
n03/gpu2  n03/slot1     an accelerator; a CPU rank where there is none
n03/numa0               a NUMA node
n03/mlx5_2              a NIC (any other device name)
n03/fs:/scratch         a node's own filesystem
fs:/shared              a filesystem that all nodes see
n01~n07                 a pair of nodes
n01~n07/rail3           rail 3 of a pair
leaf1:17=n03/mlx5_2     a link: switch and port, node and NIC
"""

import re
from typing import Literal, get_args

from msgspec import Struct

Kind = Literal["cluster", "domain", "node", "gpu", "slot", "numa", "nic", "filesystem", "pair", "rail", "link"]
KINDS: tuple[Kind, ...] = get_args(Kind)
ACCELERATOR_KINDS: tuple[Kind, ...] = ("gpu", "slot")
LONGEST = 512

_NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,252}"
_PATH = r"/[^\x00-\x1f\x7f]*"
_FORMS: tuple[tuple[Kind, str], ...] = (
    ("cluster", r"cluster"),
    ("domain", rf"domain:{_NAME}"),
    ("filesystem", rf"fs:{_PATH}"),
    ("filesystem", rf"(?P<node>{_NAME})/fs:{_PATH}"),
    ("gpu", rf"(?P<node>{_NAME})/gpu\d{{1,3}}"),
    ("slot", rf"(?P<node>{_NAME})/slot\d{{1,3}}"),
    ("numa", rf"(?P<node>{_NAME})/numa\d{{1,3}}"),
    ("pair", rf"(?P<node>{_NAME})~(?P<other>{_NAME})"),
    ("rail", rf"(?P<node>{_NAME})~(?P<other>{_NAME})/rail\d{{1,3}}"),
    ("link", rf"{_NAME}:[A-Za-z0-9./_-]{{1,64}}=(?P<node>{_NAME})/{_NAME}"),
    ("node", rf"(?P<node>{_NAME})"),
    ("nic", rf"(?P<node>{_NAME})/{_NAME}"),
)
_PATTERNS = tuple((kind, re.compile(pattern)) for kind, pattern in _FORMS)


class Subject(Struct, frozen=True, kw_only=True):
    """A subject taken apart. `nodes` are the nodes it belongs to: none for the cluster, two for a pair."""

    text: str
    kind: Kind
    nodes: tuple[str, ...] = ()

    @property
    def node(self) -> str | None:
        """The one node this subject belongs to, or None where there are none or two."""
        return self.nodes[0] if len(self.nodes) == 1 else None


def parse_subject(text: str) -> Subject:
    """Take a subject apart. Raises ValueError, in one line, for text that is none."""
    if len(text) <= LONGEST:
        for kind, pattern in _PATTERNS:
            found = pattern.fullmatch(text)
            if found:
                names = found.groupdict()
                nodes = tuple(names[key] for key in ("node", "other") if names.get(key))
                return Subject(text=text, kind=kind, nodes=nodes)
    raise ValueError(f"not a subject: {text[:80]!r} (examples: cluster, n03, n03/gpu2, n01~n07, fs:/shared)")


def node_name(hostname: str) -> str:
    """A hostname made fit to be a node's name: what the grammar has no room for becomes '-'."""
    cleaned = re.sub(r"[^A-Za-z0-9._-]", "-", hostname).lstrip("._-")[:64]
    return "node-" + cleaned if cleaned in ("", "cluster") else cleaned
