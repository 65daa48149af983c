"""Positional encoding; the table is NumPy's, in float64 (R7)."""

import functools

import jax.numpy as jnp
import numpy as np
from flax import nnx

from contract import checks
from contract.trace import tap
from impl_jax.dropout import Dropout


@functools.cache
def angles(max_length, d_model):
    """pos / 10000^(2i / d_model) for every position and pair: [T D/2]."""
    position = np.arange(max_length, dtype=np.float64)
    pair = np.arange(0, d_model, 2, dtype=np.float64)
    return position[:, None] / 10000.0 ** (pair / d_model)


@functools.cache
def interleaved_table(max_length, d_model):
    """Sine on even features, cosine on odd ones (R6): float64 [T D]."""
    angle = angles(max_length, d_model)
    both = np.stack([np.sin(angle), np.cos(angle)], axis=-1)
    return both.reshape(max_length, d_model)


@functools.cache
def halves_table(max_length, d_model):
    """All sines, then all cosines (R6): float64 [T D]."""
    angle = angles(max_length, d_model)
    return np.concatenate([np.sin(angle), np.cos(angle)], axis=-1)


TABLES = {"interleaved": interleaved_table, "halves": halves_table}


class PositionalEncoding(nnx.Module):
    """Adds the position table to embeddings. It has no parameters."""

    def __init__(self, config):
        self.max_length, self.d_model = config.max_length, config.d_model
        # nnx: an array kept here would be state, and float32 without x64
        self.make_table = TABLES[config.positions]
        self.dropout = Dropout(config.dropout)

    @property
    def table(self):
        """The table that the config names, float64 [T D]."""
        return self.make_table(self.max_length, self.d_model)

    def __call__(self, x):
        """Add positions 0, 1, 2, … (R10) to x [B T D]."""
        checks.length(x.shape[1], self.max_length)
        # [1] positions [T D]: sin and cos of pos / 10000^(2i/d)  (§3.5, R6)
        positions = tap(self, "positions", jnp.asarray(
            self.table[:x.shape[1]].astype(x.dtype)))
        # [2] positioned [B T D]: x + positions  (§3.5)
        positioned = tap(self, "positioned", x + positions)
        return self.dropout(positioned)
