"""What NCCL says of itself with NCCL_DEBUG=INFO: version, network, transports, algorithm, variables in force.

node01:25797:25797 [0] NCCL INFO Using network IB
NCCL version 2.11.4+cuda11.1
gpu1:812:901 [0] NCCL INFO Channel 00/0 : 0[0] -> 8[0] [send] via NET/IB/0/GDRDMA
gpu1:812:901 [0] NCCL INFO Channel 01/0 : 0[0] -> 8[0] [send] via NET/AWS Libfabric/1/GDRDMA comm 0x7f21 nRanks 16
gpu1:812:901 [0] NCCL INFO NCCL_IB_HCA set by environment to mlx5.
gpu1:812:812 [0] NCCL INFO AllReduce: 1073741824 Bytes -> Algo RING proto SIMPLE channel{Lo..Hi}={0..15}
"""

import re
from collections.abc import Iterable

_VERSION = re.compile(r"NCCL version (\d+\.\d+\.\d+)")
_NETWORK = re.compile(r"Using network (.+?)\s*$")
_PLUGIN = re.compile(r"NET/Plugin\s*: (?:Loaded net plugin|Plugin name set by env to) (.+?)(?: \(v\d+\))?\s*$")
_TRANSPORT = re.compile(r"\] via (.+?)(?: comm 0x.*)?\s*$")
_CHANNELS = re.compile(r"(\d+) coll channels, .*?(\d+) nvls channels")
_VARIABLE = re.compile(r"(NCCL_[A-Z0-9_]+) set (?:by environment )?to (\S+?)\.?\s*$")
_ALGORITHM = re.compile(r"AllReduce: (\d+) Bytes -> Algo (\S+) proto (\S+)")

Value = str | int | bool


def nccl_settings(text: str) -> dict[str, Value]:
    """What one rank's log tells, by name; what it does not tell is left out.

    `transports` are the ways to the neighbours, with blanks between. `algorithm` is that of the largest all-reduce, as
    "RING/SIMPLE". `gpudirect` stands only where a network is used.
    """
    lines = text.splitlines()
    seen: dict[str, Value] = {}
    for key, pattern in (("version", _VERSION), ("network", _NETWORK), ("net_plugin", _PLUGIN)):
        found = _last(pattern, lines)
        if found:
            seen[key] = found[1]
    seen |= _transports(lines) | _channels(lines) | _algorithm(lines)
    variables = sorted({f"{found[1]}={found[2]}" for line in lines if (found := _VARIABLE.search(line))})
    return seen | ({"variables": " ".join(variables)} if variables else {})


def _transports(lines: list[str]) -> dict[str, Value]:
    ways = sorted({found[1].replace(" ", "_") for line in lines if (found := _TRANSPORT.search(line))})
    over_network = [way for way in ways if way.startswith("NET/")]
    seen: dict[str, Value] = {"transports": " ".join(ways)} if ways else {}
    return seen | ({"gpudirect": all("GDRDMA" in way for way in over_network)} if over_network else {})


def _channels(lines: list[str]) -> dict[str, Value]:
    found = _last(_CHANNELS, lines)
    return {"channels": int(found[1]), "nvls_channels": int(found[2])} if found else {}


def _algorithm(lines: list[str]) -> dict[str, Value]:
    chosen = [found for line in lines if (found := _ALGORITHM.search(line))]
    largest = max(chosen, key=lambda found: int(found[1]), default=None)
    return {"algorithm": f"{largest[2]}/{largest[3]}"} if largest else {}


def _last(pattern: re.Pattern[str], lines: Iterable[str]) -> re.Match[str] | None:
    last = None
    for line in lines:
        last = pattern.search(line) or last
    return last
