"""A cluster on one machine: hosts with names, private /tmp, a shaped cable and a real sshd each."""

from .lab import HEALTHY_MBIT, Host, Lab, LabError

__all__ = ["HEALTHY_MBIT", "Host", "Lab", "LabError"]
