"""Attention over blocks: equation 1 in memory that grows with the length.

The scores of T queries with S keys are T·S numbers. Here they are computed a
block at a time and forgotten. Of a query two things stay: the highest score so
far, m, and Σ exp(score - m) value, with Σ exp(score - m) beside it. Where a
block has a higher score, both sums shrink by exp(m - m'), as if m' had been
there from the start; at the end one is divided by the other (Milakov &
Gimelshein 2018, Rabe & Staats 2021, Dao et al. 2022).

Both steps are a feature more. A query's last is -m and a key's is 1, so that
their product is score - m; a value's last is 1, so that the sum of weighted
values ends with the sum of weights. On the way back a query's last is
-(m + log Σ exp(score - m)), and the same product gives log weights: so they are
computed again, block by block, instead of kept.
"""

import concurrent.futures
import itertools
import os

import numpy as np

#: Queries and keys of a block, which stays in a core's cache. Where there are
#: fewer of either, all scores at once are as quick.
SIZE = 512

#: By how much a score may exceed m before m follows: e^8 is a small number.
LEEWAY = 8

#: Heads are shared out to threads, since NumPy lets go of Python's lock; and
#: where these are more, on the way there, rows of a head.
THREADS = (len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity")
           else os.cpu_count())
POOL = concurrent.futures.ThreadPoolExecutor(THREADS)


def blocks(length):
    """Slices of at most SIZE, one after the other."""
    return [slice(i, min(i + SIZE, length)) for i in range(0, length, SIZE)]


def with_last(x, last):
    """x [* K] with one feature more: [* K+1]; ``last`` is a number or [* 1]."""
    last = np.broadcast_to(last, (*x.shape[:-1], 1))
    return np.concatenate([x, last], axis=-1, dtype=x.dtype)


def of_head(mask, i):
    """A head's mask [T S] of one [B H T S], each axis of which may be 1."""
    return mask[tuple(0 if size == 1 else place
                      for place, size in zip(i, mask.shape))]


def readable(keys, rows, causal):
    """Blocks of keys [S K], but none that is later than all of some rows."""
    return blocks(min(len(keys), rows.stop) if causal else len(keys))


def allowed(mask, causal, rows, keys):
    """Which of a block's queries may attend to which of its keys, bool.

    An axis of it is 1 where the mask's is and no query attends differently.
    """
    block = mask[tuple(slice(None) if size == 1 else part
                       for size, part in zip(mask.shape, (rows, keys)))]
    if causal and keys.stop > rows.start + 1:
        row, key = (np.arange(part.start, part.stop) for part in (rows, keys))
        block = block & (key <= row[:, None])
    return block


def attend(query, key, value, mask, causal, divisor):
    """Equation 1, with no array of T·S numbers.

    Args:
        query: [B H T K].
        key, value: [B H S K].
        mask: bool, each axis 1 or that of [B H T S].
        causal: whether, besides, no query attends to a later key.
        divisor: what scores are divided by.

    Returns:
        The context [B H T K], and for the way back each query's logarithm of
        Σ exp(score), [B H T 1].
    """
    context, log_sums = np.empty_like(query), np.empty_like(query[..., :1])
    heads = list(np.ndindex(query.shape[:2]))
    shares = -(-THREADS // max(len(heads), 1))

    def attend_share(part):
        i, first = part
        keys, values = with_last(key[i], 1), with_last(value[i], 1)
        for rows in blocks(query.shape[2])[first::shares]:
            context[i][rows], log_sums[i][rows] = of_rows(
                with_last(query[i][rows] / query.dtype.type(divisor), 0),
                keys, values, [
                    (some, allowed(of_head(mask, i), causal, rows, some))
                    for some in readable(keys, rows, causal)])

    list(POOL.map(attend_share, itertools.product(heads, range(shares))))
    return context, log_sums


def of_rows(query, key, value, parts):
    """The context of some queries [R K+1], block by block of keys [S K+1].

    ``parts`` are the blocks and the mask of each.
    """
    lowest = np.finfo(query.dtype).min
    sums = np.zeros_like(query)
    for keys, mask in parts:
        if not mask.any():
            continue
        scores = query @ key[keys].T  # less m
        if not mask.all():
            scores = np.where(mask, scores, lowest)
        rise = np.max(scores, axis=-1, keepdims=True)
        bound = np.where(sums[:, -1:] > 0, LEEWAY, lowest)
        if np.any(rise > bound):
            rise = np.where(rise > bound, rise, 0)
            query[:, -1:] -= rise
            sums *= np.exp(-np.maximum(rise, 0))  # at first they are 0
            scores -= rise
        sums += np.exp(scores, out=scores) @ value[keys]
    # A query that may attend to nothing has no weights, and a context of 0.
    total = np.where(sums[:, -1:] > 0, sums[:, -1:], 1)
    return sums[:, :-1] / total, np.log(total) - query[:, -1:]


def attend_backward(dcontext, query, key, value, mask, causal, divisor,
                    context, log_sums):
    """From dcontext [B H T K]: dquery, dkey, dvalue.

    ``context`` and ``log_sums`` are what ``attend`` returned.
    """
    mean = np.vecdot(dcontext, context)[..., None]
    dquery, dkey, dvalue = map(np.zeros_like, (query, key, value))

    def attend_head_backward(i):
        features = with_last(
            query[i] / query.dtype.type(divisor), -log_sums[i])
        keys, values = with_last(key[i], 1), with_last(value[i], 1)
        dfeatures = with_last(dcontext[i], -mean[i])
        for rows in blocks(len(features)):
            for some in readable(keys, rows, causal):
                block = allowed(of_head(mask, i), causal, rows, some)
                if not block.any():
                    continue
                logs = features[rows] @ keys[some].T
                if not block.all():
                    logs = np.where(block, logs, np.finfo(logs.dtype).min)
                weights = np.exp(logs, out=logs)
                dvalue[i][some] += weights.T @ dcontext[i][rows]
                dscores = weights * (dfeatures[rows] @ values[some].T)
                dquery[i][rows] += dscores @ key[i][some]
                dkey[i][some] += dscores.T @ features[rows, :-1]

    list(POOL.map(attend_head_backward, np.ndindex(query.shape[:2])))
    dquery /= query.dtype.type(divisor)
    return dquery, dkey, dvalue
