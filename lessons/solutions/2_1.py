import numpy as np


def positions(length, d_model):
    pair = np.arange(d_model // 2)
    angle = np.arange(length)[:, None] / 10000.0 ** (2 * pair / d_model)
    table = np.empty((length, d_model))
    table[:, 0::2] = np.sin(angle)
    table[:, 1::2] = np.cos(angle)
    return table
