"""Drives a run: probe plan -> gangs -> records; resume; progress as a value for whoever shows it; doctor."""
