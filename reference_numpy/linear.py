"""y = x W + b. The ports use their own Linear or Dense."""

import math

import numpy as np


def glorot(d_in, d_out):
    """A kernel [in out]: uniform, of variance 2 / (in + out)."""
    limit = math.sqrt(6 / (d_in + d_out))  # Glorot and Bengio 2010, eq. 16
    return np.random.uniform(-limit, limit, (d_in, d_out))


def uniform_rows(count, width):
    """A table [V D]: uniform, of variance 1 / D."""
    limit = math.sqrt(3 / width)
    return np.random.uniform(-limit, limit, (count, width))


class Linear:
    """An affine map of the last axis.

    Parameters: ``kernel`` [in out] and ``bias`` [out].
    """

    def __init__(self, d_in, d_out):
        self.kernel = glorot(d_in, d_out)
        self.bias = np.zeros(d_out)

    def __call__(self, x):
        """Map x [... in] to [... out]."""
        return x @ self.kernel + self.bias

    def backward(self, dy, x):
        """From dy [... out] and the input x: dx and g, by parameter.

        Every row of x met the same kernel, so its gradient is a sum over rows,
        which is one product: dW = xᵀ dy.
        """
        rows, drows = x.reshape(-1, x.shape[-1]), dy.reshape(-1, dy.shape[-1])
        g = {"kernel": rows.T @ drows, "bias": drows.sum(axis=0)}
        return dy @ self.kernel.T, g


def under(name, g):
    """Gradients of a linear map's parameters, named from its owner."""
    return {f"{name}.{leaf}": array for leaf, array in g.items()}
