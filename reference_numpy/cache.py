"""Keys and values that are kept while a target is written.

A decoder layer needs the key and value of each earlier token, and these never
change, since a token attends to no later one. So they are kept, and each new
token costs one row of work, not one row for every token before it.
"""

import numpy as np


class Cache:
    """What one self-attention keeps.

    Attributes:
        keys, values: [B G N K], N being the greatest length; 0 at
            unwritten positions, which a causal mask hides.
        written: how many tokens are written: the next one's position.
    """

    def __init__(self, shape, dtype):
        self.keys = np.zeros(shape, dtype)
        self.values = np.zeros(shape, dtype)
        self.written = 0

    def extend(self, key, value):
        """Keep the next token's key and value [B G 1 K]; return all of them."""
        # [1] here [N 1]: True at the new token's position
        here = np.arange(self.keys.shape[2])[:, None] == self.written
        # [2] keys [B G N K]: with the new key at its position
        keys = self.keys = np.where(here, key, self.keys)
        # [3] values [B G N K]: with the new value at its position
        values = self.values = np.where(here, value, self.values)
        self.written += 1
        return keys, values

    def reorder(self, parents):
        """Let each row continue another one: parents, int [B].

        A hypothesis of a beam that continues another one needs that one's keys
        and values.
        """
        self.keys, self.values = self.keys[parents], self.values[parents]


def new_caches(model, rows, length):
    """An empty cache of ``rows`` rows and ``length`` tokens for each layer."""
    config = model.config
    shape = (rows, config.kv_heads, length, config.d_k)
    dtype = model.target_embedding.table.dtype
    return [Cache(shape, dtype) for _ in model.decoder.layers]
