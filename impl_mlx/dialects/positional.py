"""Positions of other systems: other tables, learned ones, or none.

Some leave padding out of the count, or normalise the sum before dropout.
"""

import mlx.core as mx

from transformer_contract import checks
from transformer_contract.sinusoids import ROUNDINGS, TABLES
from transformer_contract.trace import tap
from impl_mlx import parts
from impl_mlx.linear import uniform_rows
from impl_mlx.positional import PositionalEncoding


class DialectPositions(PositionalEncoding):
    """Adds positions; the sum may be normalised, then dropout.

    Parameters: those of ``norm``, if ``config.embedding_norm``.
    """

    def __init__(self, config, max_length):
        super().__init__(config, max_length)
        self.pad_id, self.first = config.pad_id, config.position_start
        self.normed = config.embedding_norm
        if self.normed:
            self.norm = parts.norm(config, config.norm_eps)

    def __call__(self, x, tokens, start):
        """Add to x [B T D], of tokens [B T], its positions from start on."""
        positions = self.positions(x, tokens, start)
        # [1] positioned [B T D]: x + positions
        positioned = tap(self, "positioned", x + positions)
        return self.finish(positioned)

    def finish(self, x):
        """x [B T D], normalised if the config says so; then dropout."""
        return self.dropout(self.norm(x) if self.normed else x)

    def rows(self, x, start):
        """Which rows of a table x [B T D] has from start on."""
        end = start + x.shape[1]
        checks.length(end, self.max_length)
        return slice(self.first + start, self.first + end)

    def unpadded_rows(self, x, tokens, start):
        """Rows [B T], padding not counted; and which are not padding."""
        checks.length(start + x.shape[1], self.max_length)
        seen = (tokens != self.pad_id).astype(mx.int32)
        rows = self.first + start + mx.cumsum(seen, axis=1) - seen
        return rows, seen[..., None] > 0


class SinusoidalPositions(DialectPositions):
    """Other tables of sines and cosines (R6, R47)."""

    def __init__(self, config, max_length):
        super().__init__(config, max_length)
        self.layout, self.divisor = config.positions, config.position_divisor
        self.rounding = config.position_rounding

    def values(self):
        """The table that the config names, float64 [T D]."""
        # mlx: NumPy's, since an array that a module keeps is a parameter
        table = TABLES[self.layout](
            self.first + self.max_length, self.d_model, self.divisor)
        return ROUNDINGS[self.rounding](table)

    def positions(self, x, tokens, start):
        """Rows of the table for x [B T D], from start on."""
        rows = self.rows(x, start)
        # [1] positions [T D]: the table's rows from start on  (R6, R47)
        positions = tap(self, "positions", mx.array(
            self.values()[rows], x.dtype))
        return positions


class UnpaddedSinusoids(SinusoidalPositions):
    """The same, counting only tokens that are not padding."""

    def positions(self, x, tokens, start):
        """Rows of the table for x [B T D]; padding has none."""
        rows, seen = self.unpadded_rows(x, tokens, start)
        # [1] positions [B T D]: row of the tokens before; 0 if padding  (R49)
        positions = tap(self, "positions", mx.where(
            seen, mx.array(self.values(), x.dtype)[rows], 0))
        return positions


class LearnedPositions(DialectPositions):
    """Rows of a table that is learned (R48). Parameter: ``table``."""

    def __init__(self, config, max_length):
        super().__init__(config, max_length)
        self.table = uniform_rows(self.first + max_length, self.d_model)

    def positions(self, x, tokens, start):
        """Rows of the table for x [B T D], from start on."""
        rows = self.rows(x, start)
        # [1] positions [T D]: the learned table's rows from start on  (R48)
        positions = tap(self, "positions", self.table[rows].astype(
            x.dtype))
        return positions


class UnpaddedPositions(LearnedPositions):
    """The same, counting only tokens that are not padding."""

    def positions(self, x, tokens, start):
        """Rows of the table for x [B T D]; padding has none."""
        rows, seen = self.unpadded_rows(x, tokens, start)
        # [1] positions [B T D]: row of the tokens before; 0 if padding  (R49)
        positions = tap(self, "positions", mx.where(
            seen, self.table.astype(x.dtype)[rows], 0))
        return positions


class NoPositions(DialectPositions):
    """Adds nothing: attention may know of positions instead."""

    def __call__(self, x, tokens, start):
        """Hand on x [B T D], normalised if the config says so; dropout."""
        checks.length(start + x.shape[1], self.max_length)
        return self.finish(x)
