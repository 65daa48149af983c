"""What all parts are made of: a linear map and a table, as NNX has them.

They begin as the contract's initial_weights says, by NNX's own numbers.
"""

import jax
from flax import nnx

#: Uniform, of variance 2 / (in + out) (Glorot and Bengio 2010, eq. 16).
glorot = jax.nn.initializers.glorot_uniform()

#: Uniform, of variance 1 / D: a row of a table has length 1 or so.
uniform_rows = jax.nn.initializers.variance_scaling(
    1.0, "fan_out", "uniform")


def as_stored(arrays, **_):
    """Arrays as they are."""
    return arrays


class Linear(nnx.Linear):
    """x W + b. Parameters: ``kernel`` [in out] and ``bias`` [out]."""

    def __init__(self, d_in, d_out, *, use_bias, rngs):
        super().__init__(d_in, d_out, use_bias=use_bias, kernel_init=glorot,
                         rngs=rngs)


class Table(nnx.Embed):
    """Rows of numbers. Parameter: ``embedding`` [rows D]."""

    def __init__(self, rows, d_model, *, rngs):
        super().__init__(
            rows, d_model, embedding_init=uniform_rows,
            promote_dtype=as_stored,  # nnx: else loaded float64 turns float32
            rngs=rngs)
