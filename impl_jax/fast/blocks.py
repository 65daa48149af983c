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

import functools
import os

import jax
import jax.numpy as jnp
import numpy as np

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


def with_last(x, last):
    """x [* K] with one feature more: [* K+1]; ``last`` is a number or [* 1]."""
    last = jnp.broadcast_to(last, (*x.shape[:-1], 1)).astype(x.dtype)
    return jnp.concatenate([x, last], axis=-1)


def padded(x, axes, size):
    """x with zeros up to whole blocks, along some axes."""
    return jnp.pad(x, [
        (0, -n % size if axis in axes else 0)
        for axis, n in enumerate(x.shape)])


def wide(mask):
    """Which of a mask's last axes are no broadcast ones."""
    return [axis for axis in (2, 3) if mask.shape[axis] > 1]


def block_of(x, i, block, size):
    """A head's block of x [B H T K], its batch and head given: [size K]."""
    return jax.lax.dynamic_slice(
        x, (*i, block * size, 0), (1, 1, size, x.shape[-1]))[0, 0]


def allowed(mask, causal, length, i, rows, keys, size):
    """Which of a block's queries may attend to which of its keys, bool."""
    starts = *i, rows * size, keys * size
    block = jax.lax.dynamic_slice(
        mask, [0 if n == 1 else start for n, start in zip(mask.shape, starts)],
        [1, 1, *(min(n, size) for n in mask.shape[2:])])[0, 0]
    key = keys * size + jnp.arange(size)
    if length % size:
        block = block & (key < length)
    if causal:
        block = block & (key <= rows * size + jnp.arange(size)[:, None])
    return block


def heads_of(x):
    """Every batch and head of x [B H T K]: int [N 2]."""
    places = np.stack(np.indices(x.shape[:2]), axis=-1).reshape(-1, 2)
    return jnp.asarray(places)


def over_keys(count, row, causal, step, state):
    """The state after a step for each block that a row reads, of ``count``.

    ``step(block, state, causal)`` hides later keys where it is told to: on the
    diagonal. Blocks behind it are passed over.
    """
    before = jnp.minimum(count, row) if causal else count
    state = jax.lax.fori_loop(
        0, before, lambda block, state: step(block, state, False), state)
    if not causal:
        return state
    return jax.lax.fori_loop(
        before, jnp.minimum(count, row + 1),
        lambda block, state: step(block, state, True), state)


@functools.partial(jax.custom_vjp, nondiff_argnums=(4, 5))
def attend(query, key, value, mask, causal, divisor):
    """Equation 1, with no array of T·S numbers; see reference_numpy."""
    context, _ = attend_forward(query, key, value, mask, causal, divisor)
    return context


def attend_forward(query, key, value, mask, causal, divisor):
    """The context [B H T K], and what the way back needs."""
    lowest, length = jnp.finfo(query.dtype).min, key.shape[2]
    size = size_of(query, key)
    features = padded(with_last(query / divisor, 0), (2,), size)
    keys, values = (
        padded(with_last(x, 1), (2,), size) for x in (key, value))
    whole, count = padded(mask, wide(mask), size), keys.shape[2] // size

    def of_rows(i, row):
        def step(block, state, causal):
            may = allowed(whole, causal, length, i, row, block, size)
            return jax.lax.cond(
                jnp.any(may), add, lambda block, may, state: state,
                block, may, state)

        def add(block, may, state):
            query, sums = state
            scores = jnp.where(
                may, query @ block_of(keys, i, block, size).T, lowest)  # less m
            rise = jnp.max(scores, axis=-1, keepdims=True)
            bound = jnp.where(sums[:, -1:] > 0, 0, lowest)
            rise = jnp.where(rise > bound, rise, 0)
            weights = jnp.exp(scores - rise)
            shrunk = sums * jnp.exp(-jnp.maximum(rise, 0))  # 0 at first
            return (query.at[:, -1:].add(-rise),
                    shrunk + weights @ block_of(values, i, block, size))

        query, sums = block_of(features, i, row, size), jnp.zeros(
            (size, features.shape[-1]), features.dtype)
        query, sums = over_keys(count, row, causal, step, (query, sums))
        # A query that may attend to nothing has no weights: its context is 0.
        total = jnp.where(sums[:, -1:] > 0, sums[:, -1:], 1)
        return sums[:, :-1] / total, jnp.log(total) - query[:, -1:]

    def of_head(i):
        return jax.lax.map(
            functools.partial(of_rows, tuple(i)),
            jnp.arange(features.shape[2] // size))

    context, log_sums = (
        x.reshape(*features.shape[:3], -1)[:, :, :query.shape[2]]
        for x in jax.lax.map(of_head, heads_of(query)))
    return context, (query, key, value, mask, context, log_sums)


def attend_backward(causal, divisor, kept, dcontext):
    """From dcontext [B H T K]: dquery, dkey, dvalue, and none for the mask."""
    query, key, value, mask, context, log_sums = kept
    lowest, length = jnp.finfo(query.dtype).min, key.shape[2]
    size = size_of(query, key)
    mean = jnp.sum(dcontext * context, axis=-1, keepdims=True)
    features, dfeatures = (padded(x, (2,), size) for x in (
        with_last(query / divisor, -log_sums), with_last(dcontext, -mean)))
    keys, values = (
        padded(with_last(x, 1), (2,), size) for x in (key, value))
    whole, count = padded(mask, wide(mask), size), keys.shape[2] // size

    def of_head(i):
        i = tuple(i)

        def of_rows(row, sums):
            query, dcontext = (
                block_of(x, i, row, size) for x in (features, dfeatures))

            def step(block, sums, causal):
                may = allowed(whole, causal, length, i, row, block, size)
                return jax.lax.cond(
                    jnp.any(may), add, lambda block, may, sums: sums,
                    block, may, sums)

            def add(block, may, sums):
                dqueries, dkeys, dvalues = sums
                key, value = (
                    block_of(x, i, block, size) for x in (keys, values))
                weights = jnp.exp(jnp.where(may, query @ key.T, lowest))
                dscores = weights * (dcontext @ value.T)
                return (added(dqueries, row, dscores @ key),
                        added(dkeys, block, dscores.T @ query),
                        added(dvalues, block, weights.T @ dcontext))

            return over_keys(count, row, causal, step, sums)

        return jax.lax.fori_loop(0, features.shape[2] // size, of_rows, tuple(
            jnp.zeros(x.shape[2:], x.dtype)
            for x in (features, keys, values)))

    dquery, dkey, dvalue = (
        x.reshape(*query.shape[:2], -1, x.shape[-1])[:, :, :n, :-1]
        for x, n in zip(jax.lax.map(of_head, heads_of(query)),
                        (query.shape[2], length, length)))
    return dquery / divisor, dkey, dvalue, None


def added(x, block, summand):
    """x [S K] with a summand [n K] added to one of its blocks."""
    size = len(summand)
    start = block * size
    old = jax.lax.dynamic_slice_in_dim(x, start, size)
    return jax.lax.dynamic_update_slice_in_dim(x, old + summand, start, axis=0)


attend.defvjp(attend_forward, attend_backward)
