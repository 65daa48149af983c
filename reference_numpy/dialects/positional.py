"""Positions of other systems: other tables, learned ones, or none.

Some leave padding out of the count, or normalise the sum before dropout.
"""

import numpy as np

from transformer_contract import checks
from transformer_contract.sinusoids import ROUNDINGS, TABLES
from reference_numpy import parts
from reference_numpy.linear import uniform_rows
from reference_numpy.positional import PositionalEncoding


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

    def forward(self, x, tokens, start):
        """Add to x [B T D], of tokens [B T], its positions from start on."""
        c = {}
        positions = self.positions(x, tokens, start, c)
        # [1] positioned [B T D]: x + positions
        positioned = c["positioned"] = x + positions
        return self.finish(positioned, c)

    def finish(self, x, c):
        """x [B T D], normalised if the config says so; then dropout."""
        if self.normed:
            x, c["norm"] = self.norm.forward(x)
        dropped, c["dropout"] = self.dropout.forward(x)
        return dropped, c

    def backward(self, ddropped, c):
        """From ddropped [B T D]: dx and g."""
        dpositioned, g = self.finish_backward(ddropped, c)
        g["positioned"] = dpositioned
        # [1'] x, positions: positioned = x + positions
        dx = dpositioned
        one_for_all = c["positions"].ndim == 2
        g["positions"] = dpositioned.sum(axis=0) if one_for_all else dpositioned
        return dx, g

    def finish_backward(self, ddropped, c):
        """From ddropped [B T D]: dx and g."""
        g = {}
        dx = self.dropout.backward(ddropped, c["dropout"])
        if self.normed:
            dx, g["norm"] = self.norm.backward(dx, c["norm"])
        return dx, g

    def rows(self, x, start, c):
        """Which rows of a table x [B T D] has from start on."""
        end = start + x.shape[1]
        checks.length(end, self.max_length)
        rows = np.arange(self.first + start, self.first + end)
        c["rows"] = (rows, True)
        return rows

    def unpadded_rows(self, x, tokens, start, c):
        """Rows [B T], padding not counted; and which are not padding."""
        checks.length(start + x.shape[1], self.max_length)
        seen = tokens != self.pad_id
        rows = self.first + start + np.cumsum(seen, axis=1) - seen
        c["rows"] = (rows, seen[..., None])
        return c["rows"]


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

    def positions(self, x, tokens, start, c):
        """Rows of the table for x [B T D], from start on."""
        rows = self.rows(x, start, c)
        # [1] positions [T D]: the table's rows from start on  (R6, R47)
        positions = c["positions"] = self.values()[rows].astype(x.dtype)
        return positions


class UnpaddedSinusoids(SinusoidalPositions):
    """The same, counting only tokens that are not padding."""

    def positions(self, x, tokens, start, c):
        """Rows of the table for x [B T D]; padding has none."""
        rows, seen = self.unpadded_rows(x, tokens, start, c)
        # [1] positions [B T D]: row of the tokens before; 0 if padding  (R49)
        positions = c["positions"] = np.where(
            seen, self.values()[rows], 0).astype(x.dtype)
        return positions


class LearnedPositions(DialectPositions):
    """Rows of a table that is learned (R48). Parameter: ``table``."""

    def __init__(self, config, max_length):
        super().__init__(config, max_length)
        self.table = uniform_rows(
            self.first + max_length, config.d_model)

    def positions(self, x, tokens, start, c):
        """Rows of the table for x [B T D], from start on."""
        rows = self.rows(x, start, c)
        # [1] positions [T D]: the learned table's rows from start on  (R48)
        positions = c["positions"] = self.table[rows].astype(x.dtype)
        return positions

    def backward(self, ddropped, c):
        """From ddropped [B T D]: dx and g."""
        dx, g = super().backward(ddropped, c)
        rows, seen = c["rows"]
        # [1'] table: positions = its rows, for tokens that are seen
        dtable = g["table"] = np.zeros_like(self.table)
        np.add.at(dtable, rows, np.where(seen, g["positions"], 0))
        return dx, g


class UnpaddedPositions(LearnedPositions):
    """The same, counting only tokens that are not padding."""

    def positions(self, x, tokens, start, c):
        """Rows of the table for x [B T D]; padding has none."""
        rows, seen = self.unpadded_rows(x, tokens, start, c)
        # [1] positions [B T D]: row of the tokens before; 0 if padding  (R49)
        positions = c["positions"] = np.where(
            seen, self.table[rows], 0).astype(x.dtype)
        return positions


class NoPositions(DialectPositions):
    """Adds nothing: attention may know of positions instead."""

    def forward(self, x, tokens, start):
        """Hand on x [B T D], normalised if the config says so; dropout."""
        checks.length(start + x.shape[1], self.max_length)
        return self.finish(x, {})

    def backward(self, ddropped, c):
        """From ddropped [B T D]: dx and g."""
        return self.finish_backward(ddropped, c)
