"""The training steps again, on a batch of which half is padding."""

from benchmarks.training_implementations import IMPLEMENTATIONS, config
from benchmarks.workload import padded_pairs as batch

__all__ = ["IMPLEMENTATIONS", "config", "batch"]
