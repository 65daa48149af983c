"""Positional encoding; the table stays float64 whatever the model is (R7)."""

import functools

import torch
from torch import nn

from contract import checks
from contract.trace import tap
from impl_torch.dropout import Dropout


@functools.cache
def angles(max_length, d_model):
    """pos / 10000^(2i / d_model) for every position and pair: [T D/2]."""
    kind = {"dtype": torch.float64, "device": "cpu"}
    position = torch.arange(max_length, **kind)
    pair = torch.arange(0, d_model, 2, **kind)
    return position[:, None] / 10000.0 ** (pair / d_model)


@functools.cache
def interleaved_table(max_length, d_model):
    """Sine on even features, cosine on odd ones (R6): float64 [T D]."""
    angle = angles(max_length, d_model)
    both = torch.stack([torch.sin(angle), torch.cos(angle)], dim=-1)
    return both.reshape(max_length, d_model)


@functools.cache
def halves_table(max_length, d_model):
    """All sines, then all cosines (R6): float64 [T D]."""
    angle = angles(max_length, d_model)
    return torch.cat([torch.sin(angle), torch.cos(angle)], dim=-1)


TABLES = {"interleaved": interleaved_table, "halves": halves_table}


class PositionalEncoding(nn.Module):
    """Adds the position table to embeddings. It has no parameters."""

    def __init__(self, config):
        super().__init__()
        self.max_length = config.max_length
        self.table = TABLES[config.positions](config.max_length, config.d_model)
        self.dropout = Dropout(config.dropout)

    def forward(self, x):
        """Add positions 0, 1, 2, … (R10) to x [B T D]."""
        checks.length(x.shape[1], self.max_length)
        # [1] positions [T D]: sin and cos of pos / 10000^(2i/d)  (§3.5, R6)
        positions = tap(self, "positions", self.table[:x.shape[1]].to(x))
        # [2] positioned [B T D]: x + positions  (§3.5)
        positioned = tap(self, "positioned", x + positions)
        return self.dropout(positioned)
