"""The commands, a file each: options, wiring and exit codes, no logic. What a command needs is imported inside it."""
