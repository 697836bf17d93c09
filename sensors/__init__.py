"""What is read beside running work: NVML, the host, the kernel log, link counters, as deltas around our own load."""
