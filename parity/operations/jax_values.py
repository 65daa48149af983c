"""Arrays, scalars and dtypes as JAX has them, and those of a run."""

import hashlib
import weakref

import jax
import jax.numpy as jnp
import numpy as np

from parity.operations.jax_dispatch import undisturbed
from parity.operations.jax_widening import is_key, is_short, widened
from parity.operations.keeping import put_down
from parity.operations.program import CONSTANT, LEAF


def to_numpy(value):
    """An array's numbers, as NumPy has them; a random key's are its words."""
    if isinstance(value, jax.Array) and is_key(value.dtype):
        value = jax.random.key_data(value)
    return np.asarray(value)


def dtype_of(value):
    """The dtype that JAX has an array or a scalar in."""
    dtype = getattr(value, "dtype", None)
    return jax.typeof(value).dtype if dtype is None else dtype


def content(array):
    """What equal arrays have in common; None where they are too plain to be
    recognised by it: keys, and arrays of one number."""
    if is_key(array.dtype) or not array.ndim:
        return None
    numbers = np.asarray(array)
    if numbers.size < 2 or (numbers == numbers.flat[0]).all():
        return None
    return numbers.shape, numbers.dtype.str, hashlib.blake2b(
        np.ascontiguousarray(numbers).view(np.uint8).data,
        digest_size=16).digest()


def put(edit, array):
    """An edit as what it takes the place of."""
    edit = np.broadcast_to(np.asarray(edit), np.shape(array)).astype(
        dtype_of(array))
    return jnp.asarray(edit) if isinstance(array, jax.Array) else edit


def bits(dtype):
    """How long a floating dtype is."""
    return jnp.finfo(dtype).bits


def precision(params):
    """The dtype that ``reduce_precision`` rounds to."""
    asked = params["exponent_bits"], params["mantissa_bits"]
    return next((jnp.dtype(each) for each in (
        jnp.bfloat16, jnp.float16, jnp.float32) if asked == (
            jnp.finfo(each).nexp, jnp.finfo(each).nmant)), None)


def is_array(value):
    """Whether a value has a shape and numbers: random keys as well."""
    return isinstance(value, (jax.Array, np.ndarray, np.generic))


class JaxValues:
    """The Values of a run, and which array is which.

    Args:
        program: the Program that they are put into.
        edits, keep: as of ``Runner.run``.
        silent: whether nothing is put into the program.
        before: the Program of an earlier run, or None.
    """

    def __init__(self, program, edits, keep, silent, before=None):
        self.before = before
        self.program, self.silent, self.keep = program, silent, keep
        self.exact, self.edits = program.exact, dict(edits or {})
        self.known, self.longer, self.contents = {}, {}, {}

    def value(self, kind, name, array, dtype, made_by=None):
        """A new Value's number."""
        return put_down(self.program, self.keep, to_numpy(array), kind, name,
                        str(dtype), made_by, self.before)

    def know(self, array, number, dtype=None):
        """That an array is a Value, which the program has in a dtype."""
        if isinstance(array, (jax.Array, np.ndarray)):
            dtype = jnp.dtype(dtype or self.program.values[number].dtype) if (
                not is_key(array.dtype)) else array.dtype
            self.known[id(array)] = weakref.ref(array), number, dtype

    def found(self, array):
        """The number of the Value that an array is, or None."""
        known = self.known.get(id(array))
        if known is not None and known[0]() is array:
            return known[1]
        if self.contents and isinstance(array, (jax.Array, np.ndarray)):
            return self.contents.get(content(array))
        return None

    def dtype(self, array):
        """The dtype that the program has an array in."""
        known = self.known.get(id(array))
        if known is not None and known[0]() is array:
            return known[2]
        return dtype_of(array)

    def number(self, array):
        """The number of the Value that an array or a scalar is."""
        number = self.found(array)
        if number is None:
            number = self.value(CONSTANT, "", array, dtype_of(array))
            self.know(array, number)
        return number

    def leaf(self, kind, name, array, instead=None):
        """What an input or a parameter is in this run.

        Args:
            kind: INPUT or PARAMETER.
            name: as of a Trace.
            array: JAX's or NumPy's; give the result to the model instead.
            instead: another array to use, of the same shape, or None.
        """
        with undisturbed():
            used = array if instead is None else instead
            used = widened(used) if self.exact else used
            if (LEAF, name) in self.edits:
                used = put(self.edits[LEAF, name], used)
            if self.silent:
                return used
            number = self.value(kind, name, used, dtype_of(array))
            for each in (array, used):
                self.know(each, number)
            self.longer[id(array)] = array, used
            # NumPy's own are given anew with each use, in JAX's own dtype.
            for each in ([used] if isinstance(used, jax.Array)
                         else [used, jnp.asarray(used)]):
                key = content(each)
                if key is not None:
                    self.contents.setdefault(key, number)
        return used

    def taken(self, array):
        """An operand as it is computed with."""
        if id(array) in self.longer and self.longer[id(array)][0] is array:
            return self.longer[id(array)][1]
        if not self.exact or not is_short(dtype_of(array)):
            return array
        used = widened(array)
        if isinstance(array, (jax.Array, np.ndarray)) and not self.silent:
            number = self.number(array)
            self.program.values[number].dtype = str(array.dtype)
            self.know(used, number)
            self.longer[id(array)] = array, used
        return used

    def staged(self, value):
        """JAX's array of NumPy's or of a scalar."""
        used = self.taken(value)
        if isinstance(used, jax.Array):
            return used
        array = jnp.asarray(used)
        if not self.silent:
            self.know(array, self.number(used))
        return array
