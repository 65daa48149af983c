"""Positions: what tells the model where a token stands (section 3.5).

    PE[pos, 2i]     = sin(pos / 10000^(2i / d_model))
    PE[pos, 2i + 1] = cos(pos / 10000^(2i / d_model))

The table is float64, and rounded to the input's dtype where it is added (R7).
Other positions are in dialects/positional.py.
"""

import functools

import mlx.core as mx
import mlx.nn as nn
import numpy as np

from transformer_contract import checks
from transformer_contract.trace import tap
from impl_mlx.dropout import Dropout


@functools.cache
def position_table(length, d_model):
    """Sine on even features, cosine on odd ones (R6): float64 [T D]."""
    pos, i = np.arange(length)[:, None], np.arange(d_model // 2)
    angles = pos / 10000.0 ** (2 * i / d_model)
    both = np.stack([np.sin(angles), np.cos(angles)], axis=-1)
    return both.reshape(length, d_model)


class PositionalEncoding(nn.Module):
    """Adds a row of the table to each embedding; then dropout (§5.4)."""

    def __init__(self, config, max_length):
        super().__init__()
        self.d_model, self.max_length = config.d_model, max_length
        self.dropout = Dropout(config.dropout)

    def positions(self, x, tokens, start):
        """What is added to x [B T D], whose first position is start (R10)."""
        end = start + x.shape[1]
        checks.length(end, self.max_length)
        table = position_table(self.max_length, self.d_model)
        # [1] positions [T D]: sin and cos of pos / 10000^(2i/d)  (§3.5, R6)
        positions = tap(self, "positions", mx.array(
            table[start:end], x.dtype))
        return positions

    def __call__(self, x, tokens, start):
        """Add positions start, start + 1, … to x [B T D], of tokens [B T]."""
        positions = self.positions(x, tokens, start)
        # [2] positioned [B T D]: x + positions  (§3.5)
        positioned = tap(self, "positioned", x + positions)
        return self.dropout(positioned)
