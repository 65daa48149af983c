"""Positions: what tells the model where a token stands (section 3.5).

    PE[pos, 2i]     = sin(pos / 10000^(2i / d_model))
    PE[pos, 2i + 1] = cos(pos / 10000^(2i / d_model))

The table is computed in float64 (``contract.sinusoids``) and only then rounded
to the input's dtype (R7). Others learn the table, count without padding, or add
nothing here; the config names which. What is added up may be normalised, and
is dropped.
"""

import numpy as np

from contract import checks
from contract.sinusoids import ROUNDINGS, TABLES
from reference_numpy.dropout import Dropout
from reference_numpy.layer_norm import NORMS, NoNorm


class NoPositions:
    """Adds nothing to embeddings. Parameters: those of ``norm``, if any."""

    def __init__(self, config, max_length):
        self.max_length, self.pad_id = max_length, config.pad_id
        self.norm = (NORMS[config.norm_form](config.d_model, config.norm_eps)
                     if config.embedding_norm else NoNorm())
        self.dropout = Dropout(config.dropout)

    def forward(self, x, tokens, start):
        """Hand on x [B T D], the embeddings of tokens, int [B T].

        A whole sequence starts at 0.
        """
        checks.length(start + x.shape[1], self.max_length)
        return self.finish(x, {})

    def finish(self, x, c):
        """x [B T D] normalised, if the config says so, and dropped."""
        normalized, c["norm"] = self.norm.forward(x)
        dropped, c["dropout"] = self.dropout.forward(normalized)
        return dropped, c

    def backward(self, ddropped, c):
        """From ddropped [B T D]: dx and g."""
        g = {}
        dnormalized = self.dropout.backward(ddropped, c["dropout"])
        dx, g["norm"] = self.norm.backward(dnormalized, c["norm"])
        return dx, g


class PositionalEncoding(NoPositions):
    """Adds the table of sines and cosines."""

    def __init__(self, config, max_length):
        super().__init__(config, max_length)
        self.first = config.position_start
        self.table = ROUNDINGS[config.position_rounding](
            TABLES[config.positions](
                self.first + max_length, config.d_model,
                config.position_divisor))

    def forward(self, x, tokens, start):
        """Add positions start, start + 1, … (R10) to x [B T D]."""
        end = start + x.shape[1]
        checks.length(end, self.max_length)
        rows = np.arange(self.first + start, self.first + end)
        c = {"inputs": (rows, True)}
        # [1] positions [T D]: sin and cos of pos / 10000^(2i/d)  (§3.5, R6)
        positions = c["positions"] = self.table[rows].astype(x.dtype)
        # [2] positioned [B T D]: x + positions  (§3.5)
        positioned = c["positioned"] = x + positions
        return self.finish(positioned, c)

    def backward(self, ddropped, c):
        """From ddropped [B T D]: dx and g.

        The table is a constant; its gradient is shown because it is a step.
        """
        dpositioned, g = super().backward(ddropped, c)
        g["positioned"] = dpositioned
        # [2'] x, positions: positioned = x + positions
        dx = dpositioned
        shape = c["positions"].shape
        g["positions"] = (
            dpositioned.sum(axis=0) if len(shape) == 2 else dpositioned)
        return dx, g


class UnpaddedEncoding(PositionalEncoding):
    """The same, counting only tokens that are not padding."""

    def forward(self, x, tokens, start):
        """Add to x [B T D] each token's position; padding has none."""
        checks.length(start + x.shape[1], self.max_length)
        seen = tokens != self.pad_id
        rows = self.first + start + np.cumsum(seen, axis=1) - seen
        c = {"inputs": (rows, seen[..., None])}
        # [1] positions [B T D]: row of the tokens before; 0 if padding  (R49)
        positions = c["positions"] = np.where(
            seen[..., None], self.table[rows], 0).astype(x.dtype)
        # [2] positioned [B T D]: x + positions  (§3.5)
        positioned = c["positioned"] = x + positions
        return self.finish(positioned, c)


class LearnedPositions(PositionalEncoding):
    """Adds rows of a table that is learned (R48). Parameter: ``table``."""

    def __init__(self, config, max_length):
        NoPositions.__init__(self, config, max_length)
        self.first = config.position_start
        self.table = np.zeros((self.first + max_length, config.d_model))

    def backward(self, ddropped, c):
        """From ddropped [B T D]: dx and g."""
        dx, g = super().backward(ddropped, c)
        rows, seen = c["inputs"]
        # [1'] table: positions = its rows, for tokens that are seen
        dtable = g["table"] = np.zeros_like(self.table)
        np.add.at(dtable, rows, np.where(seen, g["positions"], 0))
        return dx, g


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
