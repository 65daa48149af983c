"""Attention over blocks: equation 1 in memory that grows with the length.

Scores are computed a block at a time and forgotten. Of a query two things stay:
the highest score so far, m, and Σ exp(score - m) value, with Σ exp(score - m)
beside it; where a block has a higher score, both shrink (Milakov & Gimelshein
2018, Rabe & Staats 2021, Dao et al. 2022).

Both steps are a feature more. A query's last is -m and a key's is 1, so that
their product is score - m; a value's last is 1, so that the sum of weighted
values ends with the sum of weights. On the way back a query's last is
-(m + log Σ exp(score - m)), and the same product gives log weights.
"""

import os

import keras
import ml_dtypes
import numpy as np
from keras import ops

#: How many cores XLA has: it goes from block to block, and shares out each.
CORES = (len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity")
         else os.cpu_count())

#: Queries and keys of a block, which stays in a core's cache. Where there are
#: fewer of either, all scores at once are as quick.
SIZE = 512

#: From so many blocks on, one of twice that is worth it where it is shared out.
MANY = 8


def size_of(query, key):
    """Queries and keys of a block, of query [B H T K] and key [B H S K]."""
    many = min(query.shape[2], key.shape[2]) >= MANY * SIZE
    return 2 * SIZE if many and CORES > 1 else SIZE


def lowest_of(x):
    """The most negative finite number of x's dtype, in that dtype."""
    dtype = keras.backend.standardize_dtype(x.dtype)
    return ops.convert_to_tensor(ml_dtypes.finfo(dtype).min, dtype)


def with_last(x, last):
    """x [* K] with one feature more: [* K+1]; ``last`` is a number or [* 1]."""
    last = ops.broadcast_to(ops.cast(last, x.dtype), (*x.shape[:-1], 1))
    return ops.concatenate([x, last], axis=-1)


def padded(x, axes, size):
    """x with zeros up to whole blocks, along some axes."""
    pairs = [(0, -n % size if axis in axes else 0)
             for axis, n in enumerate(x.shape)]
    if x.dtype != "bool":
        return ops.pad(x, pairs)
    # keras: TensorFlow pads no booleans
    return ops.cast(ops.pad(ops.cast(x, "int8"), pairs), "bool")


def at(*starts):
    """Where a slice begins, numbers and tensors alike."""
    return ops.stack([ops.cast(start, "int32") for start in starts])


def wide(mask):
    """Which of a mask's last axes are no broadcast ones."""
    return [axis for axis in (2, 3) if mask.shape[axis] > 1]


def block_of(x, i, block, size):
    """A head's block of x [B H T K], its batch and head given: [size K]."""
    return ops.slice(x, at(i[0], i[1], block * size, 0),
                     (1, 1, size, x.shape[-1]))[0, 0]


def allowed(mask, causal, length, i, rows, keys, size):
    """Which of a block's queries may attend to which of its keys, bool."""
    starts = i[0], i[1], rows * size, keys * size
    block = ops.slice(
        mask, at(*(0 if n == 1 else start
                   for n, start in zip(mask.shape, starts))),
        (1, 1, *(min(n, size) for n in mask.shape[2:])))[0, 0]
    place = ops.arange(size, dtype="int32")
    if length % size:
        block = block & (keys * size + place < length)
    if causal:
        block = block & (keys * size + place <= rows * size + place[:, None])
    return block


def heads_of(x):
    """Every batch and head of x [B H T K]: int [N 2]."""
    places = np.stack(np.indices(x.shape[:2]), axis=-1).reshape(-1, 2)
    return ops.convert_to_tensor(places.astype("int32"))


def over_keys(count, row, causal, step, state):
    """The state after a step for each block that a row reads, of ``count``.

    ``step(block, state, causal)`` hides later keys where it is told to: on the
    diagonal. Blocks behind it are passed over.
    """
    before = ops.minimum(count, row) if causal else count
    state = ops.fori_loop(
        0, before, lambda block, state: step(block, state, False), state)
    if not causal:
        return state
    return ops.fori_loop(
        before, ops.minimum(count, row + 1),
        lambda block, state: step(block, state, True), state)


def attend(query, key, value, mask, causal, divisor):
    """Equation 1, with no array of T·S numbers; see reference_numpy."""

    @ops.custom_gradient
    def function(query, key, value):
        context, kept = attend_forward(
            query, key, value, mask, causal, divisor)

        def backward(*args, upstream=None):
            dcontext, = args if upstream is None else (upstream,)
            return attend_backward(causal, divisor, kept, dcontext)

        return context, backward

    return function(query, key, value)


def attend_forward(query, key, value, mask, causal, divisor):
    """The context [B H T K], and what the way back needs."""
    lowest, length = lowest_of(query), key.shape[2]
    size = size_of(query, key)
    features = padded(with_last(query / divisor, 0), (2,), size)
    keys, values = (
        padded(with_last(x, 1), (2,), size) for x in (key, value))
    whole, count = padded(mask, wide(mask), size), keys.shape[2] // size

    def of_rows(i, row):
        def step(block, state, causal):
            may = allowed(whole, causal, length, i, row, block, size)
            return ops.cond(ops.any(may), lambda: add(block, may, state),
                            lambda: state)

        def add(block, may, state):
            query, sums = state
            key = ops.transpose(block_of(keys, i, block, size))
            scores = ops.where(may, query @ key, lowest)  # less m
            rise = ops.max(scores, axis=-1, keepdims=True)
            bound = ops.where(sums[:, -1:] > 0, ops.zeros_like(rise), lowest)
            rise = ops.where(rise > bound, rise, ops.zeros_like(rise))
            weights = ops.exp(scores - rise)
            query = with_last(query[:, :-1], query[:, -1:] - rise)
            shrunk = sums * ops.exp(-ops.maximum(rise, 0))  # 0 at first
            return query, shrunk + weights @ block_of(values, i, block, size)

        query, sums = over_keys(count, row, causal, step, (
            block_of(features, i, row, size),
            ops.zeros((size, features.shape[-1]), features.dtype)))
        # A query that may attend to nothing has no weights: its context is 0.
        total = ops.where(sums[:, -1:] > 0, sums[:, -1:],
                          ops.ones_like(sums[:, -1:]))
        return sums[:, :-1] / total, ops.log(total) - query[:, -1:]

    def of_head(i):
        return ops.map(lambda row: of_rows(i, row), ops.arange(
            features.shape[2] // size, dtype="int32"))

    context, log_sums = (
        ops.reshape(x, (*features.shape[:3], -1))[:, :, :query.shape[2]]
        for x in ops.map(of_head, heads_of(query)))
    return context, (query, key, value, mask, context, log_sums)


def attend_backward(causal, divisor, kept, dcontext):
    """From dcontext [B H T K]: dquery, dkey, dvalue."""
    query, key, value, mask, context, log_sums = kept
    lowest, length = lowest_of(query), key.shape[2]
    size = size_of(query, key)
    mean = ops.sum(dcontext * context, axis=-1, keepdims=True)
    features, dfeatures = (padded(x, (2,), size) for x in (
        with_last(query / divisor, -log_sums), with_last(dcontext, -mean)))
    keys, values = (
        padded(with_last(x, 1), (2,), size) for x in (key, value))
    whole, count = padded(mask, wide(mask), size), keys.shape[2] // size

    def of_head(i):
        def of_rows(row, sums):
            query, dcontext = (
                block_of(x, i, row, size) for x in (features, dfeatures))

            def step(block, sums, causal):
                may = allowed(whole, causal, length, i, row, block, size)
                return ops.cond(ops.any(may), lambda: add(block, may, sums),
                                lambda: sums)

            def add(block, may, sums):
                dqueries, dkeys, dvalues = sums
                key, value = (
                    block_of(x, i, block, size) for x in (keys, values))
                weights = ops.exp(ops.where(
                    may, query @ ops.transpose(key), lowest))
                dscores = weights * (dcontext @ ops.transpose(value))
                return (added(dqueries, row, dscores @ key),
                        added(dkeys, block, ops.transpose(dscores) @ query),
                        added(dvalues, block,
                              ops.transpose(weights) @ dcontext))

            return over_keys(count, row, causal, step, sums)

        return ops.fori_loop(0, features.shape[2] // size, of_rows, tuple(
            ops.zeros(x.shape[2:], x.dtype)
            for x in (features, keys, values)))

    dquery, dkey, dvalue = (
        ops.reshape(x, (*query.shape[:2], -1, x.shape[-1]))[:, :, :n, :-1]
        for x, n in zip(ops.map(of_head, heads_of(query)),
                        (query.shape[2], length, length)))
    return dquery / divisor, dkey, dvalue


def added(x, block, summand):
    """x [S K] with a summand [n K] added to one of its blocks."""
    size = summand.shape[0]
    start, shape = at(block * size, 0), (size, x.shape[-1])
    return ops.slice_update(x, start, ops.slice(x, start, shape) + summand)
