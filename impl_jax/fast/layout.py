"""Weights laid out for a search, and by whom its products are computed.

A token is mostly the reading of weights, and long rows of them are read sooner,
so that self-attention's query, key and value are one product.

XLA on a processor gives products of float32 to YNNPACK or to Eigen. For the few
rows of a search Eigen is the faster on an AMD EPYC, 0.5 to 1 of the time, as
long as the weight is a kernel [in out]; its transpose takes it ten times as
long. So a tied table is laid out as one for a search that is long enough.
"""

import copy
import functools
import itertools
import weakref

import jax
import jax.numpy as jnp
from flax import nnx

from impl_jax.fast.split import at, of, split, structure
from impl_jax.parameters import home
from impl_jax.projection import TiedProjection

#: Tokens of a search from which on a copy of the table pays.
LONG = 32

#: What is kept of a model -> the structure of what is laid out of it.
STRUCTURES = weakref.WeakKeyDictionary()

#: Nothing is given to YNNPACK.
BY_EIGEN = ("xla_cpu_experimental_ynn_fusion_type", ""),


def kept(function):
    """A function of arrays; what it made is kept as long as they live.

    JAX's arrays never change, so that the next search finds it.
    """
    made = {}

    @functools.wraps(function)
    def found(*arrays):
        key = tuple(map(id, arrays))
        if key not in made:
            value = function(*arrays)
            if not all(isinstance(array, jax.Array) for array in arrays):
                return value  # NumPy's may change
            made[key] = value, [
                weakref.ref(array, lambda _: made.pop(key, None))
                for array in arrays]
        return made[key][0]
    return found


@kept
def turned(table):
    """A table [V D] as a kernel [D V]."""
    return table.T


@kept
def side_by_side(*arrays):
    """Arrays [... out] as one [... total]."""
    return jnp.concatenate(arrays, axis=-1)


class Turned(nnx.Module):
    """A tied projection whose table is kept as a kernel [D V].

    Weights that are changed later do not reach it.
    """

    def __init__(self, tied):
        self.kernel = nnx.Param(turned(tied.embedding.table.embedding[...]))
        self.bias = getattr(tied, "bias", None)

    def __call__(self, x):
        """Map x [B T D] to logits."""
        logits = x @ self.kernel
        return logits if self.bias is None else logits + self.bias


class Joined(nnx.Module):
    """Some linear maps of one input, as one.

    Weights that are changed later do not reach it.
    """

    def __init__(self, maps):
        kernels = [each.kernel[...] for each in maps]
        self.kernel = nnx.Param(side_by_side(*kernels))
        self.bias = nnx.Param(side_by_side(*(
            jnp.zeros_like(kernel[0]) if each.bias is None else each.bias[...]
            for kernel, each in zip(kernels, maps))))
        self.sizes = tuple(kernel.shape[-1] for kernel in kernels)

    def __call__(self, x):
        """Map x [... D] to each map's [... out]."""
        y = x @ self.kernel + self.bias
        ends = itertools.accumulate(self.sizes[:-1])
        return jnp.split(y, list(ends), axis=-1)


def laid_out(model, tokens):
    """A model of the same parts, for a search of so many tokens.

    Weights that are changed later do not reach it.

    Returns:
        Its SplitGraph, its arrays and XLA's options for it; where nothing pays
        the model's own, and none.
    """
    if tokens < LONG or home(model) != "cpu":
        return *split(model), ()
    layers = nnx.List(
        with_parts(layer, self_attention=joined(layer.self_attention))
        for layer in model.decoder.layers)
    tied = isinstance(model.projection, TiedProjection)
    own = with_parts(
        model, decoder=with_parts(model.decoder, layers=layers),
        **{"projection": Turned(model.projection)} if tied else {})
    before = of(model, ())
    if before not in STRUCTURES:
        STRUCTURES[before] = structure(own)
    graph, [paths] = STRUCTURES[before]
    return graph, [at(own, path).get_raw_value() for path in paths], known()


def joined(attention):
    """An attention whose query, key and value are one map."""
    own = with_parts(attention)
    own.joined = Joined((attention.query, attention.key, attention.value))
    return own


def with_parts(module, **parts):
    """The module with some other parts; it itself is left as it is."""
    own = copy.copy(module)
    vars(own).update(parts)  # nnx: its own way refuses a loop's body
    return own


@functools.cache
def known():
    """BY_EIGEN, where this XLA knows it."""
    try:
        jax.jit(abs, compiler_options=dict(BY_EIGEN)).lower(1.0).compile()
    except jax.errors.JaxRuntimeError:
        return ()
    return BY_EIGEN
