"""Weights with which no ReLU's input is so small that rounding decides it."""

from transformer_contract.weights import probe_weights
from parity.check.runners import Reference

#: How many weights are tried.
MOST_SEEDS = 100


def probes(config, first):
    """Yield weights of a model, each drawn by another seed."""
    return (probe_weights(config, seed) for seed in range(first, MOST_SEEDS))


def suited(config, case, dtype, candidates):
    """The first weights that are not near a kink in a Case.

    Args:
        candidates: weights by name; the last are taken if none suit.

    Returns:
        Their Reference, and the weights.
    """
    for weights in candidates:
        reference = Reference(config, weights, dtype)
        if not reference.near_a_kink(case):
            break
    return reference, weights
