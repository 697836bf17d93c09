"""Foreign output formats: one file each, pure text in, values out, no I/O."""
