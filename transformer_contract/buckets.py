"""Which bucket a distance between two tokens falls into (Raffel et al. 2020).

Near distances have a bucket each, further ones share some, whose widths grow by
one factor up to the greatest distance; all beyond are in the last. T5's code
takes a logarithm in float32, whose boundaries at 16, 32 and 64 are exact only
by luck. Here they are found in whole numbers (R45).
"""

import bisect
import functools

import numpy as np


@functools.cache
def boundaries(count, greatest):
    """The first distance of each of ``count`` buckets, as a tuple.

    Of the second half, bucket number k begins at the least distance d with
    d / half >= (greatest / half)^(k / (count - half)).
    """
    half = count // 2
    far, distances = count - half, range(half, greatest + 1)
    return (*range(half), *(
        distances[bisect.bisect_left(
            distances, greatest**k * half**far,
            key=lambda d: d**far * half**k)] for k in range(far)))


def buckets(queries, keys, start, count, greatest, causal):
    """The bucket of each query and key: int [T S].

    Args:
        queries, keys: T and S; the first query is at position ``start``, the
            first key at 0.
        count: how many buckets there are.
        greatest: the distance from which on all are in one bucket.
        causal: whether keys after the query, which it does not see, share
            bucket 0; else they have the second half of the buckets.
    """
    key = np.arange(keys)
    distance = (start + np.arange(queries))[:, None] - key
    if causal:
        first = boundaries(count, greatest)
        return np.searchsorted(first, np.maximum(distance, 0), "right") - 1
    first = boundaries(count // 2, greatest)
    near = np.searchsorted(first, np.abs(distance), "right") - 1
    return near + np.where(distance < 0, count // 2, 0)
