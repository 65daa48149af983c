import numpy as np


def numerical_gradient(f, x, h=1e-5):
    gradient = np.zeros_like(x)
    for place in np.ndindex(x.shape):
        step = np.zeros_like(x)
        step[place] = h
        gradient[place] = (f(x + step) - f(x - step)) / (2 * h)
    return gradient
