"""JAX's loops run step by step, and primitives that others do in several."""

import numpy as np
from jax import lax

from parity.operations.jax_dispatch import opened


def row(recording, array, i):
    """Row i of an array."""
    sizes = array.shape[1:]
    part, = recording.process(lax.slice_p, [array], {
        "start_indices": (i, *(0,) * len(sizes)),
        "limit_indices": (i + 1, *sizes), "strides": None})
    return recording.process(lax.squeeze_p, [part], {"dimensions": (0,)})[0]


def stacked(recording, rows):
    """Arrays as the rows of one."""
    rows = [recording.process(lax.broadcast_in_dim_p, [each], {
        "shape": (1, *np.shape(each)), "sharding": None,
        "broadcast_dimensions": tuple(range(1, np.ndim(each) + 1))})[0]
        for each in rows]
    return recording.process(lax.concatenate_p, rows, {"dimension": 0})[0]


def scan(recording, args, params):
    """``scan``, step by step; None where it has no step."""
    length, n = params["length"], params["num_consts"]
    m = n + params["num_carry"]
    constants, carry, rows = args[:n], args[n:m], args[m:]
    jaxpr, held_constants = opened(params, "jaxpr")
    if not length:
        return None
    made = []
    steps = range(length)
    for i in reversed(steps) if params["reverse"] else steps:
        results = recording.inner(jaxpr, held_constants, [
            *constants, *carry, *(row(recording, each, i) for each in rows)])
        carry = results[:len(carry)]
        made.append(results[len(carry):])
    if params["reverse"]:
        made.reverse()
    return [*carry, *(stacked(recording, each) for each in zip(*made))]


def cond(recording, args, params):
    """``cond`` and ``switch``: the branch that is taken."""
    branches = params["branches"]
    index = int(np.clip(int(args[0]), 0, len(branches) - 1))
    return recording.inner(*opened(branches, index), args[1:])


def loop(recording, args, params):
    """``while``, step by step; of a batch, until all of it is done."""
    n, m = params["cond_nconsts"], params["body_nconsts"]
    asked, constants, values = args[:n], args[n:n + m], args[n + m:]
    while True:
        going, = recording.inner(
            *opened(params, "cond_jaxpr"), [*asked, *values])
        if not np.any(going):
            return [*map(recording.staged, values)]
        made = recording.inner(
            *opened(params, "body_jaxpr"), [*constants, *values])
        if going.ndim:
            made = [recording.process(lax.select_n_p, [
                spread(recording, going, np.shape(new)), old, new], {})[0]
                for old, new in zip(values, made)]
        values = made


def spread(recording, array, shape):
    """An array along the first axes of a shape."""
    return recording.process(lax.broadcast_in_dim_p, [array], {
        "shape": shape, "sharding": None,
        "broadcast_dimensions": tuple(range(array.ndim))})[0]


LOOPS = {"scan": scan, "cond": cond, "while": loop}


def clamp(recording, args, params):
    """``clamp``: a maximum, then a minimum."""
    low, x, high = args
    middle, = recording.process(lax.max_p, [x, low], {})
    return recording.process(lax.min_p, [middle, high], {})


def split(recording, args, params):
    """``split``: slices."""
    x, axis, begin, parts = args[0], params["axis"], 0, []
    for size in params["sizes"]:
        start, stop = [0] * x.ndim, list(x.shape)
        start[axis], stop[axis] = begin, begin + size
        parts += recording.process(lax.slice_p, [x], {
            "start_indices": tuple(start), "limit_indices": tuple(stop),
            "strides": None})
        begin += size
    return parts


def broadcast(recording, args, params):
    """``broadcast_in_dim`` with new axes inside: a reshape before."""
    x, shape = args[0], params["shape"]
    places = params["broadcast_dimensions"]
    if np.size(x) == np.prod(shape) or (
            places == tuple(range(len(shape) - np.ndim(x), len(shape)))):
        return None
    sizes = [1] * len(shape)
    for place, size in zip(places, x.shape):
        sizes[place] = size
    x, = recording.process(lax.reshape_p, [x], {
        "new_sizes": tuple(sizes), "dimensions": None, "sharding": None})
    return recording.process(lax.broadcast_in_dim_p, [x], {
        **params, "broadcast_dimensions": tuple(range(len(shape)))})


PARTS = {"clamp": clamp, "split": split, "broadcast_in_dim": broadcast}

