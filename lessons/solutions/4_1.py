import numpy as np


def causal_mask(length):
    return np.tri(length, dtype=bool)[None, None]
