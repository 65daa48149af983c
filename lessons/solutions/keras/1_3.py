import math

from keras import ops


def embed_backward(tokens, dembedded, vocab):
    d_model = dembedded.shape[-1]
    rows = ops.reshape(dembedded * math.sqrt(d_model), (-1, d_model))
    return ops.segment_sum(rows, ops.reshape(tokens, (-1,)), vocab)
