"""doctor's judgement of which hosts reach which: one that nobody reaches, one that reaches nobody, or single pairs."""

from collections import defaultdict
from collections.abc import Mapping

from .advice import Advice, problem

_REMEDY = "open the firewall between the nodes, for all ports: ranks meet at ports that the system chooses"


def port_problems(unreached: Mapping[str, Mapping[str, str]]) -> dict[str, list[Advice]]:
    """Problems by host. `unreached` says for each host that was asked which others it does not reach, and why.

    A host that none of the others reaches is named alone, and not each of those that tried; so is one that reaches
    none of the rest. Of two hosts it cannot be told which of them is at fault: both are named.
    """
    hosts = list(unreached)
    found: dict[str, list[Advice]] = defaultdict(list)
    shut = [host for host in hosts if len(hosts) > 2 and all(host in unreached[one] for one in hosts if one != host)]
    for host in shut:
        why = next(unreached[one][host] for one in hosts if one != host)
        found[host].append(problem(f"{host}: ports", f"no other host reaches it: {why}", _REMEDY))
    open_to = [host for host in hosts if host not in shut]
    for host in hosts:
        left = {name: why for name, why in unreached[host].items() if name not in shut}
        if left:
            whole = len(left) > 1 and left.keys() >= set(open_to) - {host}
            to = "reaches no other host" if whole else f"does not reach {', '.join(left)}"
            found[host].append(problem(f"{host}: ports to hosts", f"{to}: {next(iter(left.values()))}", _REMEDY))
    return dict(found)
