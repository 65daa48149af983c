"""Position tables of sines and cosines (section 3.5), in float64.

    PE[pos, 2i]     = sin(pos / 10000^(2i / d_model))
    PE[pos, 2i + 1] = cos(pos / 10000^(2i / d_model))

A table is a constant, not something that a framework computes, so it is here
once for all four. It is float64, and rounded where it is used (R7): computed in
float32, the sine of 5000 radians is wrong in the fourth decimal.
"""

import functools

import numpy as np


def angles(max_length, d_model):
    """pos / 10000^(2i / d_model) for every position and pair: [T D/2]."""
    position = np.arange(max_length, dtype=np.float64)
    pair = np.arange(0, d_model, 2, dtype=np.float64)
    return position[:, None] / 10000.0 ** (pair / d_model)


@functools.cache
def interleaved_table(max_length, d_model):
    """Sine on even features, cosine on odd ones (R6): float64 [T D]."""
    angle = angles(max_length, d_model)
    both = np.stack([np.sin(angle), np.cos(angle)], axis=-1)
    return both.reshape(max_length, d_model)


@functools.cache
def halves_table(max_length, d_model):
    """All sines, then all cosines (R6): float64 [T D]."""
    angle = angles(max_length, d_model)
    return np.concatenate([np.sin(angle), np.cos(angle)], axis=-1)


TABLES = {"interleaved": interleaved_table, "halves": halves_table}
