"""`python -m hwlottery` is the same command as `hwlottery`."""

from .cli import main

main()
