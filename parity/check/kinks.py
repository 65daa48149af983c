"""Weights with which rounding decides nothing that answers hang on.

In low precision it may decide whether a ReLU's input is positive. And of a
model that rounds to float32 inside, it may decide in float64 to which of two
numbers: where what is rounded lies in the middle of them, to the last digits.
Then sound ports differ by 6e-8, and nothing is to be learned from it.

Nor is it where few ReLUs stand and none of them is positive: then gradients are
zero. And a deep model may multiply rounding until a gradient that cancels has
less accuracy than its limit asks for.
"""

import contextlib
from unittest import mock

import numpy as np

from transformer_contract.weights import probe_weights
from parity import ports
from parity.check.runners import Reference

#: How many weights are tried.
MOST_SEEDS = 100

#: The reference's functions that round to float32, by their modules.
ROUNDING = {"dialects.attention": "in_float32",
            "dialects.norms": "rounded_to_float32"}

#: Of how many ReLUs none may be positive; and how many layers of a
#: stack may multiply rounding by a million.
FEW, DEEP = 128, 12

#: How near the middle of two numbers is too near, in float64's eps.
GUARD = 64


def probes(config, first):
    """Yield weights of a model, each drawn by another seed."""
    return (probe_weights(config, seed) for seed in range(first, MOST_SEEDS))


def suited(config, cases, dtype, candidates):
    """The first weights with which rounding decides nothing in some Cases.

    Args:
        candidates: weights by name; the last are taken if none suit.

    Returns:
        Their Reference, and the weights.
    """
    rounds = "float32" in (config.norm_rounding, config.softmax_rounding)
    for weights in candidates:
        reference = Reference(config, weights, dtype)
        exact = rounds and Reference(config, weights, "float64").exact
        if not any(reference.near_a_kink(case)
                   or exact and near_a_tie(exact, case)
                   or is_dead(reference, case) or is_unsteady(reference, case)
                   for case in cases):
            break
    return reference, weights


def is_dead(reference, case):
    """Whether no ReLU of a sub-layer hands on a gradient, of a few."""
    config = reference.exact.config
    if (case.kind != "gradients" or config.activation != "relu"
            or min(ids.size for ids in case.inputs[:2]) * config.d_ff > FEW):
        return False
    steps = reference.exact.steps(case, case.inputs)
    return any(not gradient.any() for name, gradient in steps.items()
               if name.endswith("feed_forward.inner.kernel"))


def is_unsteady(reference, case):
    """Whether rounding moves a gradient in float64 by more than half of its
    limit, so that two sound ports may be apart by all of it."""
    config = reference.exact.config
    if (case.kind != "gradients" or reference.same
            or max(config.n_encoder_layers, config.n_decoder_layers) < DEEP):
        return False
    oracle = reference.truth(case)
    return any(own > oracle.limit(name, "float64") / 2
               for name, own in oracle.own_errors.items())


def near_a_tie(exact, case):
    """Whether what a model rounds is nearly in the middle of two numbers.

    Args:
        exact: the EngineRunner of the reference in float64.
    """
    tied = []

    def watched(rounded):
        def function(x):
            tied.append(between(x))
            return rounded(x)
        return function

    with contextlib.ExitStack() as patches:
        for name, function in ROUNDING.items():
            module = ports.module_of("numpy", name)
            patches.enter_context(mock.patch.object(
                module, function, watched(getattr(module, function))))
        exact.steps(case, case.inputs)
    return any(tied)


def between(x):
    """Whether a float64 array has a number in the middle of two of float32."""
    x = x[np.isfinite(x)]
    near = x.astype(np.float32)
    half = np.spacing(np.abs(near)).astype(np.float64) / 2
    left = half - np.abs(x - near)
    return bool((left <= GUARD * np.finfo(x.dtype).eps * np.abs(x)).any())
