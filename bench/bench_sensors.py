"""What the sensors cost: their CPU seconds over the wall time of the work beside which they run."""

import time

from hwlottery.evidence import Reading
from hwlottery.sensors.sampler import Sampler

Budget = tuple[str, float, float, str]
_SECONDS = 20


def budgets() -> list[Budget]:
    """The sampler's own thread time over 20 s of watching, as it reports it with every trial."""
    sampler = Sampler(node="here", own_pids=set)
    sampler.start()
    token = sampler.begin()
    time.sleep(_SECONDS)
    readings = sampler.end(token)
    sampler.stop()
    (cost,) = [
        reading for reading in readings if isinstance(reading, Reading) and reading.metric == "health.sensor_cost"
    ]
    return [("sensors' CPU seconds over the work's", 100 * max(cost.samples), 0.5, "%")]
