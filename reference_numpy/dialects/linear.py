"""y = x W: a linear map without a bias, which ports make by a switch."""

from reference_numpy.linear import Linear, glorot


class LinearWithoutBias:
    """y = x W, as T5, Llama and the first lessons on attention have it.

    Parameter: ``kernel`` [in out].
    """

    def __init__(self, d_in, d_out):
        self.kernel = glorot(d_in, d_out)

    def __call__(self, x):
        """Map x [... in] to [... out]."""
        return x @ self.kernel

    def backward(self, dy, x):
        """From dy [... out] and the input x: dx and g, by parameter."""
        rows, drows = x.reshape(-1, x.shape[-1]), dy.reshape(-1, dy.shape[-1])
        return dy @ self.kernel.T, {"kernel": rows.T @ drows}


#: By whether there is a bias.
LINEARS = {True: Linear, False: LinearWithoutBias}
