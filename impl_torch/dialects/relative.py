"""Relative positions: a number for each score, by how far apart the two are.

Distances fall into buckets, and each bucket has a number for each head, which
is learned and added to the score (Raffel et al. 2020, section 2.1). One table
serves all layers of a stack.
"""

import torch
from torch import nn

from transformer_contract.buckets import buckets
from transformer_contract.trace import tap
from impl_torch.linear import Table


class RelativePositions(nn.Module):
    """Adds a row of a table, by the distance. Parameter: ``table`` [* H]."""

    causal = False

    def __init__(self, config):
        super().__init__()
        self.count = config.relative_buckets
        self.greatest = config.relative_distance
        self.table = Table(config.relative_buckets, config.n_heads)

    def forward(self, query, key, start):
        """What to add to the scores of query [B H T K] and key [B H S K]."""
        rows = buckets(query.shape[2], key.shape[2], start, self.count,
                       self.greatest, self.causal)
        rows = torch.from_numpy(rows).to(query.device)
        # [1] position_bias [H T S]: the table's row of each distance  (R45)
        position_bias = tap(self, "position_bias", torch.moveaxis(
            self.table(rows), -1, 0))
        return position_bias

    def tied(self):
        """The same for another layer, which reads this one's table."""
        return TiedRelative(self)


class CausalRelative(RelativePositions):
    """The same where no query sees a later key: the decoder's."""

    causal = True


class TiedRelative(RelativePositions):
    """Relative positions that read another layer's table (R45)."""

    def __init__(self, relative):
        nn.Module.__init__(self)  # torch: no table of its own
        self.count, self.greatest = relative.count, relative.greatest
        self.causal, self.table = relative.causal, relative.table


def tie(layers):
    """Let the self-attentions of a stack read the first one's table."""
    first, *others = layers
    for layer in others:
        layer.self_attention.relative = first.self_attention.relative.tied()


#: By what an attention attends to.
RELATIVES = {"bidirectional": RelativePositions, "causal": CausalRelative}
