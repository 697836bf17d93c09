"""hwlottery: the acceptance test for rented GPU clusters.

Data flows one way: cluster -> probes -> evidence -> scoring -> reports. Every arrow is also a file in the run
directory, so that each stage can be run again alone.
"""

__version__ = "0.1.0"
