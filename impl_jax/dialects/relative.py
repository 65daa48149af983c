"""Relative positions: a number for each score, by how far apart the two are.

Distances fall into buckets, and each bucket has a number for each head, which
is learned and added to the score (Raffel et al. 2020, section 2.1). One table
serves all layers of a stack.
"""

import jax.numpy as jnp
from flax import nnx

from transformer_contract.buckets import buckets
from transformer_contract.trace import tap
from impl_jax.linear import Table


class RelativePositions(nnx.Module):
    """Adds a row of a table, by the distance. Parameter: ``table`` [* H]."""

    causal = False

    def __init__(self, config, *, rngs):
        self.count = config.relative_buckets
        self.greatest = config.relative_distance
        self.table = Table(config.relative_buckets, config.n_heads, rngs=rngs)

    def __call__(self, query, key, start):
        """What to add to the scores of query [B H T K] and key [B H S K].

        The first query is at position start, the first key at 0.
        """
        rows = buckets(query.shape[2], key.shape[2], start, self.count,
                       self.greatest, self.causal)
        # [1] position_bias [H T S]: the table's row of each distance  (R45)
        position_bias = tap(self, "position_bias", jnp.moveaxis(
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
        self.count, self.greatest = relative.count, relative.greatest
        self.causal, self.table = relative.causal, relative.table


def tie(layers):
    """Let the self-attentions of a stack read the first one's table."""
    first, *others = layers
    for layer in others:
        layer.self_attention.relative = first.self_attention.relative.tied()


#: By what an attention attends to.
RELATIVES = {"bidirectional": RelativePositions, "causal": CausalRelative}
