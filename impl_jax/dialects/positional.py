"""Positions of other systems: other tables, learned ones, or none.

Some leave padding out of the count, or normalise the sum before dropout.
"""

import jax.numpy as jnp
import numpy as np
from flax import nnx

from transformer_contract import checks
from transformer_contract.sinusoids import ROUNDINGS, TABLES
from transformer_contract.trace import tap
from impl_jax import parts
from impl_jax.linear import uniform_rows
from impl_jax.positional import PositionalEncoding


class DialectPositions(PositionalEncoding):
    """Adds positions; the sum may be normalised, then dropout.

    Parameters: those of ``norm``, if ``config.embedding_norm``.
    """

    def __init__(self, config, max_length, *, rngs):
        super().__init__(config, max_length, rngs=rngs)
        self.pad_id, self.first = config.pad_id, config.position_start
        self.normed = config.embedding_norm
        if self.normed:
            self.norm = parts.norm(config, config.norm_eps, rngs=rngs)

    def __call__(self, x, tokens, start):
        """Add to x [B T D], of tokens [B T], its positions from start on."""
        # [1] positioned [B T D]: x + positions
        positioned = tap(
            self, "positioned", x + self.positions(x, tokens, start))
        return self.finish(positioned)

    def finish(self, x):
        """x [B T D], normalised if the config says so; then dropout."""
        return self.dropout(self.norm(x) if self.normed else x)

    def rows(self, x, start):
        """Which rows of a table x [B T D] has from start on."""
        end = start + x.shape[1]
        checks.length(end, self.max_length)
        return np.arange(self.first + start, self.first + end)

    def unpadded_rows(self, x, tokens, start):
        """Rows [B T], padding not counted; and which are not padding."""
        checks.length(start + x.shape[1], self.max_length)
        seen = tokens != self.pad_id
        rows = self.first + start + jnp.cumsum(seen, axis=1) - seen
        return rows, seen[..., None]


class SinusoidalPositions(DialectPositions):
    """Other tables of sines and cosines (R6, R47)."""

    def __init__(self, config, max_length, *, rngs):
        super().__init__(config, max_length, rngs=rngs)
        self.layout, self.divisor = config.positions, config.position_divisor
        self.rounding = config.position_rounding

    def values(self):
        """The table that the config names, float64 [T D]."""
        table = TABLES[self.layout](
            self.first + self.max_length, self.d_model, self.divisor)
        return ROUNDINGS[self.rounding](table)

    def positions(self, x, tokens, start):
        """Rows of the table for x [B T D], from start on."""
        rows = self.rows(x, start)
        # [1] positions [T D]: the table's rows from start on  (R6, R47)
        positions = tap(self, "positions", jnp.asarray(
            self.values()[rows].astype(x.dtype)))
        return positions


class UnpaddedSinusoids(SinusoidalPositions):
    """The same, counting only tokens that are not padding."""

    def positions(self, x, tokens, start):
        """Rows of the table for x [B T D]; padding has none."""
        rows, seen = self.unpadded_rows(x, tokens, start)
        table = jnp.asarray(self.values().astype(x.dtype))
        # [1] positions [B T D]: row of the tokens before; 0 if padding  (R49)
        positions = tap(self, "positions", jnp.where(seen, table[rows], 0))
        return positions


class LearnedPositions(DialectPositions):
    """Rows of a table that is learned (R48). Parameter: ``table``."""

    def __init__(self, config, max_length, *, rngs):
        super().__init__(config, max_length, rngs=rngs)
        self.table = nnx.Param(uniform_rows(
            rngs.params(), (self.first + max_length, config.d_model)))

    def positions(self, x, tokens, start):
        """Rows of the table for x [B T D], from start on."""
        rows = self.rows(x, start)
        # [1] positions [T D]: the learned table's rows from start on  (R48)
        positions = tap(
            self, "positions", self.table[rows].astype(x.dtype))
        return positions


class UnpaddedPositions(LearnedPositions):
    """The same, counting only tokens that are not padding."""

    def positions(self, x, tokens, start):
        """Rows of the table for x [B T D]; padding has none."""
        rows, seen = self.unpadded_rows(x, tokens, start)
        # [1] positions [B T D]: row of the tokens before; 0 if padding  (R49)
        positions = tap(self, "positions", jnp.where(
            seen, self.table[rows], 0).astype(x.dtype))
        return positions


class NoPositions(DialectPositions):
    """Adds nothing: attention may know of positions instead."""

    def __call__(self, x, tokens, start):
        """Hand on x [B T D], normalised if the config says so; dropout."""
        checks.length(start + x.shape[1], self.max_length)
        return self.finish(x)
