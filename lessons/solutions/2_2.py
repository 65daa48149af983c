import numpy as np


def shift(k, d_model):
    matrix = np.zeros((d_model, d_model))
    for i in range(d_model // 2):
        angle = k / 10000.0 ** (2 * i / d_model)
        matrix[2 * i:2 * i + 2, 2 * i:2 * i + 2] = [
            [np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]]
    return matrix
