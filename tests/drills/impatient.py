"""`hwlottery` with less patience: a pair of nodes that hangs is given up after some 15 s instead of 90.

So long NCCL may take to build its channels; two lab hosts meet in a second.
"""

from hwlottery.cli import main
from hwlottery.probes import pairs

if __name__ == "__main__":
    pairs._SETTLE_S = 15.0
    main()
