import numpy as np


def rotate(x):
    length, width = x.shape
    pair = np.arange(width // 2)
    angle = np.arange(length)[:, None] / 10000.0 ** (2 * pair / width)
    even, odd = x[:, 0::2], x[:, 1::2]
    turned = np.empty_like(x)
    turned[:, 0::2] = even * np.cos(angle) - odd * np.sin(angle)
    turned[:, 1::2] = even * np.sin(angle) + odd * np.cos(angle)
    return turned
