"""Linear maps as one product of two matrices, which BLAS is handed whole.

NumPy computes a product of more than two axes as many small ones. So all
leading axes become one, and the bias is added in place.
"""

from reference_numpy import linear
from reference_numpy.dialects import linear as dialect


class Linear(linear.Linear):
    """See reference_numpy.linear."""

    def __call__(self, x):
        """Map x [... in] to [... out]."""
        y = x.reshape(-1, x.shape[-1]) @ self.kernel
        y += self.bias
        return y.reshape(*x.shape[:-1], y.shape[-1])

    def backward(self, dy, x):
        """From dy [... out] and the input x: dx and g, by parameter."""
        flat = dy.reshape(-1, dy.shape[-1])
        g = {"kernel": x.reshape(-1, x.shape[-1]).T @ flat,
             "bias": flat.sum(axis=0)}
        return (flat @ self.kernel.T).reshape(x.shape), g


class LinearWithoutBias(dialect.LinearWithoutBias):
    """See reference_numpy.dialects.linear."""

    def __call__(self, x):
        """Map x [... in] to [... out]."""
        y = x.reshape(-1, x.shape[-1]) @ self.kernel
        return y.reshape(*x.shape[:-1], y.shape[-1])

    def backward(self, dy, x):
        """From dy [... out] and the input x: dx and g, by parameter."""
        flat = dy.reshape(-1, dy.shape[-1])
        g = {"kernel": x.reshape(-1, x.shape[-1]).T @ flat}
        return (flat @ self.kernel.T).reshape(x.shape), g
