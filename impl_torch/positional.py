"""Positional encoding; the table stays float64 whatever the model is (R7)."""

import torch
from torch import nn

from contract import checks
from contract.sinusoids import TABLES
from contract.trace import tap
from impl_torch.dropout import Dropout


class PositionalEncoding(nn.Module):
    """Adds the position table to embeddings. It has no parameters."""

    def __init__(self, config):
        super().__init__()
        self.max_length = config.max_length
        self.table = torch.from_numpy(TABLES[config.positions](
            config.max_length, config.d_model))
        self.dropout = Dropout(config.dropout)

    def forward(self, x, start):
        """Add positions start, start + 1, … (R10) to x [B T D]."""
        end = start + x.shape[1]
        checks.length(end, self.max_length)
        # [1] positions [T D]: sin and cos of pos / 10000^(2i/d)  (§3.5, R6)
        positions = tap(self, "positions", self.table[start:end].to(x))
        # [2] positioned [B T D]: x + positions  (§3.5)
        positioned = tap(self, "positioned", x + positions)
        return self.dropout(positioned)
