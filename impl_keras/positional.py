"""Positions: what tells the model where a token stands (section 3.5).

    PE[pos, 2i]     = sin(pos / 10000^(2i / d_model))
    PE[pos, 2i + 1] = cos(pos / 10000^(2i / d_model))

The table is float64, and rounded to the input's dtype where it is added (R7).
Other positions are in dialects/positional.py.
"""

import functools

import numpy as np
from keras import ops

from transformer_contract import checks
from transformer_contract.trace import tap
from impl_keras.dropout import Dropout
from impl_keras.whole import Layer


@functools.cache
def position_table(length, d_model):
    """Sine on even features, cosine on odd ones (R6): float64 [T D]."""
    pos, i = np.arange(length)[:, None], np.arange(d_model // 2)
    angles = pos / 10000.0 ** (2 * i / d_model)
    both = np.stack([np.sin(angles), np.cos(angles)], axis=-1)
    return both.reshape(length, d_model)


def check_length(x, axis, start, max_length):
    """Refuse x that ends after the last position; T is x's size at an axis."""
    if x.shape[axis] is not None:  # keras: T may be unknown until a model runs
        checks.length(start + x.shape[axis], max_length)


def rows(table, x, axis, start):
    """A table's rows from start on, in x's dtype, as many as T: [T D]."""
    if x.shape[axis] is None:
        whole = ops.convert_to_tensor(table, x.dtype)
        return whole[start:start + ops.shape(x)[axis]]
    return ops.convert_to_tensor(table[start:start + x.shape[axis]], x.dtype)


class PositionalEncoding(Layer):
    """Adds a row of the table to each embedding; then dropout (§5.4)."""

    def __init__(self, config, max_length):
        super().__init__()
        self.d_model, self.max_length = config.d_model, max_length
        self.dropout = Dropout(config.dropout)

    def positions(self, x, tokens, start):
        """What is added to x [B T D], whose first position is start (R10)."""
        check_length(x, 1, start, self.max_length)
        table = position_table(self.max_length, self.d_model)
        # [1] positions [T D]: sin and cos of pos / 10000^(2i/d)  (§3.5, R6)
        positions = tap(self, "positions", rows(table, x, 1, start))
        return positions

    def call(self, x, tokens, start):
        """Add positions start, start + 1, … to x [B T D], of tokens [B T]."""
        positions = self.positions(x, tokens, start)
        # [2] positioned [B T D]: x + positions  (§3.5)
        positioned = tap(self, "positioned", x + positions)
        return self.dropout(positioned)
