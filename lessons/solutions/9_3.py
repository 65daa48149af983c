import numpy as np


def clipped(gradients, limit):
    norm = np.sqrt(sum((g * g).sum() for g in gradients))
    factor = min(1.0, limit / norm)
    return tuple(g * factor for g in gradients)
