"""Random numbers by name: Threefry-2x32, as the contract defines it.

The contract's are in NumPy already; the ports write the same in their own
framework, and tests compare every bit.
"""

from transformer_contract.random import (
    bits, bits64, fold_in, fold_in_each, key, normal, threefry2x32, uniform)

__all__ = ["threefry2x32", "key", "fold_in", "fold_in_each", "bits", "bits64",
           "uniform", "normal"]
