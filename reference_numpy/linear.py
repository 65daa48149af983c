"""y = x W + b. The ports use their framework's own Linear or Dense."""

import numpy as np


class Linear:
    """An affine map of the last axis.

    Parameters: ``kernel`` [in out] and ``bias`` [out].

    All leading axes are flattened into one, so that the work is a single
    two-dimensional product, which NumPy hands to BLAS whole.
    """

    def __init__(self, d_in, d_out):
        self.kernel = np.zeros((d_in, d_out))
        self.bias = np.zeros(d_out)

    def __call__(self, x):
        """Map x [... in] to [... out]."""
        y = x.reshape(-1, x.shape[-1]) @ self.kernel
        y += self.bias
        return y.reshape(*x.shape[:-1], y.shape[-1])

    def backward(self, dy, x):
        """From dy [... out] and the input x: dx and g, by parameter.

        Every row of x met the same kernel, so its gradient is a sum over rows,
        which is one product again: dW = xᵀ dy.
        """
        flat = dy.reshape(-1, dy.shape[-1])
        g = {"kernel": x.reshape(-1, x.shape[-1]).T @ flat,
             "bias": flat.sum(axis=0)}
        return (flat @ self.kernel.T).reshape(x.shape), g


class LinearWithoutBias:
    """y = x W, as the first lessons on attention write it.

    Parameter: ``kernel`` [in out].
    """

    def __init__(self, d_in, d_out):
        self.kernel = np.zeros((d_in, d_out))

    def __call__(self, x):
        """Map x [... in] to [... out]."""
        return x @ self.kernel

    def backward(self, dy, x):
        """From dy [T out] and the input x [T in]: dx and g, by parameter."""
        return dy @ self.kernel.T, {"kernel": x.T @ dy}


def under(name, g):
    """Gradients of a linear map's parameters, named from its owner."""
    return {f"{name}.{leaf}": array for leaf, array in g.items()}
