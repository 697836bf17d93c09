"""The most that a device says of itself that its link can: a fact of inventory beside a metric of topology."""

from .facts import Facts

# GT/s a lane by PCIe generation (PCI Express base specification): NVML tells a generation, topology measures a rate.
_GTS = {1: 2.5, 2: 5.0, 3: 8.0, 4: 16.0, 5: 32.0, 6: 64.0, 7: 128.0}
FACT_OF = {
    "topology.pcie_width": "accelerator.pcie_width_max",
    "topology.pcie_gts": "accelerator.pcie_generation_max",
    "topology.nvlinks_active": "accelerator.nvlinks",
}


def maximum_of(facts: Facts, subject: str, metric: str) -> tuple[str, float | None]:
    """The fact's key, and the most in the metric's unit; None where it was not recorded or is no generation."""
    key = FACT_OF[metric]
    found = facts.number(subject, key)
    return key, _GTS.get(int(found)) if metric == "topology.pcie_gts" and found is not None else found
