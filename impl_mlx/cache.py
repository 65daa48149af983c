"""Keys and values that are kept while a target is written."""

import mlx.core as mx


class Cache:
    """What one self-attention keeps: keys, values [B G N K], and how many."""

    def __init__(self, shape, dtype):
        self.keys = mx.zeros(shape, dtype)
        self.values = mx.zeros(shape, dtype)
        self.written = 0

    def extend(self, key, value):
        """Keep the next token's key and value [B G 1 K]; return all of them."""
        # [1] here [N 1]: True at the new token's position
        here = mx.arange(self.keys.shape[2])[:, None] == self.written
        # [2] keys [B G N K]: with the new key at its position
        keys = self.keys = mx.where(here, key, self.keys)
        # [3] values [B G N K]: with the new value at its position
        values = self.values = mx.where(here, value, self.values)
        self.written += 1
        return keys, values

    def reorder(self, parents):
        """Let each row continue another one: parents, int [B]."""
        self.keys, self.values = self.keys[parents], self.values[parents]


def new_caches(model, rows, length):
    """An empty cache of ``rows`` rows and ``length`` tokens for each layer."""
    config = model.config
    shape = (rows, config.kv_heads, length, config.d_k)
    dtype = model.target_embedding.table.weight.dtype
    return [Cache(shape, dtype) for _ in model.decoder.layers]
