import numpy as np


def clipped(gradients, limit):
    norm = np.sqrt(sum((g * g).sum() for g in gradients))
    factor = limit / norm if norm > limit else 1.0
    return tuple(g * factor for g in gradients)
