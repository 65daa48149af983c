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


class LinearWithoutBias:
    """y = x W, as the first lessons on attention write it.

    Parameter: ``kernel`` [in out].
    """

    def __init__(self, d_in, d_out):
        self.kernel = np.zeros((d_in, d_out))

    def __call__(self, x):
        """Map x [... in] to [... out]."""
        return x @ self.kernel
