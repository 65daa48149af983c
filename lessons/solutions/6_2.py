import numpy as np


def norm_of(x, y):
    if np.abs(y.mean(axis=-1)).max() > 1e-6:
        return "rms"  # the others subtract the mean
    if abs(y.std() - 1) < 1e-3:
        return "layer"
    return "std"  # the deviation is √((D - 1) / D)
