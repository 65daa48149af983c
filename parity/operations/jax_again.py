"""A primitive of JAX, done anew on other operands."""

import jax
import jax.numpy as jnp
import numpy as np

from parity.operations.jax_dispatch import carried_out, sixty_four_bits
from parity.operations.jax_values import dtype_of, to_numpy
from parity.operations.jax_widening import widened_params


class JaxAgain:
    """Does one primitive of an exact run anew, and keeps nothing that it read.

    Args:
        primitive, params: as JAX has them.
        operands: what it read.
        restore: as of Naming.
    """

    def __init__(self, primitive, operands, params, restore):
        self.primitive, self.params = primitive, params
        self.restore = restore
        self.kinds = [(np.shape(each), dtype_of(each),
                       isinstance(each, jax.Array)) for each in operands]

    def __call__(self, arrays):
        """What it gives of some arrays: an array a result."""
        primitive, params = self.primitive, self.params
        with sixty_four_bits():
            given = [np.broadcast_to(array, shape).astype(dtype)
                     for array, (shape, dtype, _) in zip(arrays, self.kinds)]
            given = [jnp.asarray(array) if is_jax else array
                     for array, (_, _, is_jax) in zip(given, self.kinds)]
            if self.restore:
                primitive, given, params = self.restore(given)
            return [*map(to_numpy, carried_out(
                primitive, given, widened_params(params)))]
