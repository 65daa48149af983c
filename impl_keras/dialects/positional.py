"""Positions of other systems: other tables, learned ones, or none.

Some leave padding out of the count, or normalise the sum before dropout.
"""

from keras import ops

from transformer_contract.sinusoids import ROUNDINGS, TABLES
from transformer_contract.trace import tap
from impl_keras import parts
from impl_keras.positional import PositionalEncoding, check_length, rows
from impl_keras.whole import rows_of


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

    def call(self, x, tokens, start):
        """Add to x [B T D], of tokens [B T], its positions from start on."""
        check_length(x, 1, start, self.max_length)
        positions = self.positions(x, tokens, start)
        # [1] positioned [B T D]: x + positions
        positioned = tap(self, "positioned", x + positions)
        return self.finish(positioned)

    def finish(self, x):
        """x [B T D], normalised if the config says so; then dropout."""
        return self.dropout(self.norm(x) if self.normed else x)

    def unpadded(self, table, x, tokens, start):
        """Rows of a table [* D], padding not counted: [B T D]; 0 for padding.
        """
        seen = ops.cast(tokens != self.pad_id, "int32")
        places = self.first + start + ops.cumsum(seen, axis=1) - seen
        table = ops.convert_to_tensor(table, x.dtype)
        return ops.where(
            seen[..., None] > 0, ops.take(table, places, axis=0), 0)


class SinusoidalPositions(DialectPositions):
    """Other tables of sines and cosines (R6, R47)."""

    def __init__(self, config, max_length):
        super().__init__(config, max_length)
        self.layout, self.divisor = config.positions, config.position_divisor
        self.rounding = config.position_rounding

    def values(self):
        """The table that the config names, float64 [T D]."""
        table = TABLES[self.layout](
            self.first + self.max_length, self.d_model, self.divisor)
        return ROUNDINGS[self.rounding](table)

    def positions(self, x, tokens, start):
        """Rows of the table for x [B T D], from start on."""
        # [1] positions [T D]: the table's rows from start on  (R6, R47)
        positions = tap(self, "positions", rows(
            self.values(), x, 1, self.first + start))
        return positions


class UnpaddedSinusoids(SinusoidalPositions):
    """The same, counting only tokens that are not padding."""

    def positions(self, x, tokens, start):
        """Rows of the table for x [B T D]; padding has none."""
        # [1] positions [B T D]: row of the tokens before; 0 if padding  (R49)
        positions = tap(self, "positions", self.unpadded(
            self.values(), x, tokens, start))
        return positions


class LearnedPositions(DialectPositions):
    """Rows of a table that is learned (R48). Parameter: ``table``."""

    def __init__(self, config, max_length):
        super().__init__(config, max_length)
        self.table = self.add_weight(
            (self.first + max_length, config.d_model),
            rows_of(config.d_model), name="table")

    def positions(self, x, tokens, start):
        """Rows of the table for x [B T D], from start on."""
        # [1] positions [T D]: the learned table's rows from start on  (R48)
        positions = tap(self, "positions", rows(
            self.table, x, 1, self.first + start))
        return positions


class UnpaddedPositions(LearnedPositions):
    """The same, counting only tokens that are not padding."""

    def positions(self, x, tokens, start):
        """Rows of the table for x [B T D]; padding has none."""
        # [1] positions [B T D]: row of the tokens before; 0 if padding  (R49)
        positions = tap(self, "positions", self.unpadded(
            self.table, x, tokens, start))
        return positions


class NoPositions(DialectPositions):
    """Adds nothing: attention may know of positions instead."""

    def call(self, x, tokens, start):
        """Hand on x [B T D], normalised if the config says so; dropout."""
        check_length(x, 1, start, self.max_length)
        return self.finish(x)
