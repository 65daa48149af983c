import math

import jax.numpy as jnp


def embed_backward(tokens, dembedded, vocab):
    d_model = dembedded.shape[-1]
    dtable = jnp.zeros((vocab, d_model), dembedded.dtype)
    return dtable.at[tokens].add(dembedded * math.sqrt(d_model))
