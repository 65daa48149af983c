"""Relative positions: a number for each score, by how far apart the two are.

Distances fall into buckets, and each bucket has a number for each head, which
is learned and added to the score (Raffel et al. 2020, section 2.1). One table
serves all layers of a stack.
"""

import numpy as np

from transformer_contract.buckets import buckets
from reference_numpy.linear import uniform_rows


class RelativePositions:
    """Adds a row of a table, by the distance. Parameter: ``table`` [* H]."""

    causal = False

    def __init__(self, config):
        self.count = config.relative_buckets
        self.greatest = config.relative_distance
        self.table = uniform_rows(
            config.relative_buckets, config.n_heads)

    def forward(self, query, key, start):
        """What to add to the scores of query [B H T K] and key [B H S K].

        The first query is at position start, the first key at 0.
        """
        rows = buckets(query.shape[2], key.shape[2], start, self.count,
                       self.greatest, self.causal)
        c = {"inputs": (rows,)}
        # [1] position_bias [H T S]: the table's row of each distance  (R45)
        position_bias = c["position_bias"] = np.moveaxis(
            self.table[rows], -1, 0)
        return position_bias, c

    def backward(self, dscores, c):
        """From dscores [B H T S]: g.

        A row's gradient sums over every query and key in its bucket.
        """
        (rows,) = c["inputs"]
        g = {"position_bias": dscores.sum(axis=0)}
        # [1'] table: position_bias = its rows
        dtable = g["table"] = np.zeros_like(self.table)
        np.add.at(dtable, rows, np.moveaxis(g["position_bias"], 0, -1))
        return g

    def tied(self):
        """The same for another layer, which reads this one's table."""
        return TiedRelative(self)


class CausalRelative(RelativePositions):
    """The same where no query sees a later key: the decoder's."""

    causal = True


class TiedRelative(RelativePositions):
    """Relative positions that read another layer's table (R45)."""

    def __init__(self, relative):
        self.count, self.greatest = relative.count, relative.greatest
        self.causal, self.relative = relative.causal, relative

    @property
    def table(self):
        """The first layer's table, [* H]."""
        return self.relative.table


def tie(layers):
    """Let the self-attentions of a stack read the first one's table."""
    first, *others = layers
    for layer in others:
        layer.self_attention.relative = first.self_attention.relative.tied()


def tie_backward(g):
    """Add what every layer's g found of the table to the first one's."""
    first, *others = (layer["self_attention"]["relative"] for layer in g)
    for other in others:
        first["table"] += other.pop("table")


#: By what an attention attends to.
RELATIVES = {"bidirectional": RelativePositions, "causal": CausalRelative}
