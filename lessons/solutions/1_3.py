import math

import numpy as np


def embed_backward(tokens, dembedded, vocab):
    d_model = dembedded.shape[-1]
    dtable = np.zeros((vocab, d_model))
    np.add.at(dtable, tokens, dembedded * math.sqrt(d_model))
    return dtable
