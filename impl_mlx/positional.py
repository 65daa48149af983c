"""Positions; the table is NumPy's, in float64 (R7)."""

import mlx.core as mx
import mlx.nn as nn

from contract import checks
from contract.sinusoids import ROUNDINGS, TABLES
from contract.trace import tap
from impl_mlx.dropout import Dropout
from impl_mlx.layer_norm import NORMS, NoNorm


class NoPositions(nn.Module):
    """Adds nothing to embeddings. Parameters: those of ``norm``, if any."""

    def __init__(self, config, max_length):
        super().__init__()
        self.max_length, self.pad_id = max_length, config.pad_id
        self.norm = (NORMS[config.norm_form](config.d_model, config.norm_eps)
                     if config.embedding_norm else NoNorm())
        self.dropout = Dropout(config.dropout)

    def __call__(self, x, tokens, start):
        """Hand on x [B T D], the embeddings of tokens, int [B T]."""
        checks.length(start + x.shape[1], self.max_length)
        return self.finish(x)

    def finish(self, x):
        """x [B T D] normalised, if the config says so, and dropped."""
        return self.dropout(self.norm(x))


class PositionalEncoding(NoPositions):
    """Adds the table of sines and cosines."""

    def __init__(self, config, max_length):
        super().__init__(config, max_length)
        self.first = config.position_start
        # mlx: an array of its own kept here would be a parameter
        self.table = ROUNDINGS[config.position_rounding](
            TABLES[config.positions](
                self.first + max_length, config.d_model,
                config.position_divisor))

    def __call__(self, x, tokens, start):
        """Add positions start, start + 1, … (R10) to x [B T D]."""
        end = start + x.shape[1]
        checks.length(end, self.max_length)
        rows = slice(self.first + start, self.first + end)
        # [1] positions [T D]: sin and cos of pos / 10000^(2i/d)  (§3.5, R6)
        positions = tap(self, "positions", mx.array(
            self.table[rows], x.dtype))
        # [2] positioned [B T D]: x + positions  (§3.5)
        positioned = tap(self, "positioned", x + positions)
        return self.finish(positioned)


class UnpaddedEncoding(PositionalEncoding):
    """The same, counting only tokens that are not padding."""

    def __call__(self, x, tokens, start):
        """Add to x [B T D] each token's position; padding has none."""
        checks.length(start + x.shape[1], self.max_length)
        seen = (tokens != self.pad_id).astype(mx.int32)
        rows = self.first + start + mx.cumsum(seen, axis=1) - seen
        # [1] positions [B T D]: row of the tokens before; 0 if padding  (R49)
        positions = tap(self, "positions", mx.where(
            seen[..., None] > 0, mx.array(self.table[:], x.dtype)[rows], 0))
        # [2] positioned [B T D]: x + positions  (§3.5)
        positioned = tap(self, "positioned", x + positions)
        return self.finish(positioned)


class LearnedPositions(PositionalEncoding):
    """Adds rows of a table that is learned (R48). Parameter: ``table``."""

    def __init__(self, config, max_length):
        NoPositions.__init__(self, config, max_length)
        self.first = config.position_start
        self.table = mx.zeros(
            (self.first + max_length, config.d_model))


class UnpaddedPositions(LearnedPositions, UnpaddedEncoding):
    """Learned positions that count only tokens that are not padding."""


#: What adds nothing here: attention may know of positions instead.
NOTHING = dict.fromkeys(
    ("none", "rotary_halves", "rotary_interleaved", "relative"), NoPositions)

#: By whether padding is left out, and by the config's word.
ENCODINGS = {
    False: {"interleaved": PositionalEncoding, "halves": PositionalEncoding,
            "learned": LearnedPositions, **NOTHING},
    True: {"interleaved": UnpaddedEncoding, "halves": UnpaddedEncoding,
           "learned": UnpaddedPositions, **NOTHING},
}
