"""Keys and values that are kept while a target is written.

A decoder layer asks each earlier token for its key and value, and these never
change: a token sees no later one. So they are kept, and each new token costs
one row of work, not one row for every token before it.
"""

import numpy as np


class Cache:
    """What one self-attention keeps.

    Attributes:
        keys, values: [B H N K], N being the greatest length; 0 where nothing
            is written yet, which a causal mask hides.
        written: how many tokens are written: the next one's position.
    """

    def __init__(self, shape, dtype):
        self.keys = np.zeros(shape, dtype)
        self.values = np.zeros(shape, dtype)
        self.written = 0

    def extend(self, key, value):
        """Keep the next token's key and value [B H 1 K]; return all of them."""
        # [1] here [N 1]: True at the new token's position
        here = np.arange(self.keys.shape[2])[:, None] == self.written
        # [2] keys [B H N K]: key at its position, beside those before it
        keys = self.keys = np.where(here, key, self.keys)
        # [3] values [B H N K]: value at its position, beside those before it
        values = self.values = np.where(here, value, self.values)
        self.written += 1
        return keys, values

    def reorder(self, parents):
        """Let each row go on from another: parents, int [B].

        A hypothesis of a beam has keys and values of its own past, so where it
        goes on from another one's, these come along.
        """
        self.keys, self.values = self.keys[parents], self.values[parents]


def new_caches(model, rows, length):
    """An empty cache of ``rows`` rows and ``length`` tokens for each layer."""
    config = model.config
    shape = (rows, config.n_heads, length, config.d_k)
    dtype = model.target_embedding.table.dtype
    return [Cache(shape, dtype) for _ in model.decoder.layers]
