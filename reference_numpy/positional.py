"""Positional encoding: sines and cosines of the position (section 3.5).

    PE[pos, 2i]     = sin(pos / 10000^(2i / d_model))
    PE[pos, 2i + 1] = cos(pos / 10000^(2i / d_model))

The table is computed in float64 (``contract.sinusoids``) and only then rounded
to the input's dtype (R7).
"""

from contract import checks
from contract.sinusoids import TABLES
from reference_numpy.dropout import Dropout


class PositionalEncoding:
    """Adds the position table to embeddings. It has no parameters."""

    def __init__(self, config):
        self.max_length = config.max_length
        self.table = TABLES[config.positions](config.max_length, config.d_model)
        self.dropout = Dropout(config.dropout)

    def forward(self, x, start):
        """Add positions start, start + 1, … (R10) to x [B T D].

        A whole sequence starts at 0.
        """
        end = start + x.shape[1]
        checks.length(end, self.max_length)
        c = {"inputs": (x,)}
        # [1] positions [T D]: sin and cos of pos / 10000^(2i/d)  (§3.5, R6)
        positions = c["positions"] = self.table[start:end].astype(x.dtype)
        # [2] positioned [B T D]: x + positions  (§3.5)
        positioned = c["positioned"] = x + positions
        dropped, c["dropout"] = self.dropout.forward(positioned)
        return dropped, c

    def backward(self, ddropped, c):
        """From ddropped [B T D]: dx and g.

        The table is a constant; its gradient is shown because it is a step.
        """
        dpositioned = self.dropout.backward(ddropped, c["dropout"])
        g = {"positioned": dpositioned}
        # [2'] x, positions: positioned = x + positions
        dx = dpositioned
        g["positions"] = dpositioned.sum(axis=0)
        return dx, g
