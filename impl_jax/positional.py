"""Positional encoding; the table is NumPy's, in float64 (R7)."""

import jax.numpy as jnp
from flax import nnx

from contract import checks
from contract.sinusoids import TABLES
from contract.trace import tap
from impl_jax.dropout import Dropout


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

    def __call__(self, x, start):
        """Add positions start, start + 1, … (R10) to x [B T D]."""
        end = start + x.shape[1]
        checks.length(end, self.max_length)
        # [1] positions [T D]: sin and cos of pos / 10000^(2i/d)  (§3.5, R6)
        positions = tap(self, "positions", jnp.asarray(
            self.table[start:end].astype(x.dtype)))
        # [2] positioned [B T D]: x + positions  (§3.5)
        positioned = tap(self, "positioned", x + positions)
        return self.dropout(positioned)
