import math

import torch


def embed_backward(tokens, dembedded, vocab):
    d_model = dembedded.shape[-1]
    dtable = torch.zeros(vocab, d_model, dtype=dembedded.dtype)
    rows = (dembedded * math.sqrt(d_model)).flatten(0, 1)
    return dtable.index_add(0, tokens.flatten(), rows)
