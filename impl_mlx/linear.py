"""What all parts are made of: a linear map and a table, as MLX has them.

They begin as the contract's initial_weights says, by MLX's own numbers.
"""

import math

import mlx.core as mx
import mlx.nn as nn


class Linear(nn.Linear):
    """x W + b. Parameters: ``weight`` [out in] and ``bias`` [out]."""

    def __init__(self, d_in, d_out, bias=True):
        super().__init__(d_in, d_out, bias)
        # Uniform, of variance 2 / (in + out) (Glorot and Bengio 2010).
        self.weight = nn.init.glorot_uniform()(self.weight)
        if bias:
            self.bias = mx.zeros(d_out)


class Table(nn.Embedding):
    """Rows of vectors. Parameter: ``weight`` [V D]."""

    def __init__(self, rows, d_model):
        super().__init__(rows, d_model)
        self.weight = uniform_rows(rows, d_model)


def uniform_rows(rows, d_model):
    """A table [V D], uniform, of variance 1 / D: a row has length 1 or so."""
    limit = math.sqrt(3 / d_model)
    return mx.random.uniform(-limit, limit, (rows, d_model))
