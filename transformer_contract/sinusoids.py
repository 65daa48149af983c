"""Position tables of sines and cosines (section 3.5), in float64.

    PE[pos, 2i]     = sin(pos / 10000^(2i / d_model))
    PE[pos, 2i + 1] = cos(pos / 10000^(2i / d_model))

A table is a constant, not something that a framework computes, so it is here
once for all four. It is float64, and rounded where it is used (R7): computed in
float32, the sine of 5000 radians is wrong in the fourth decimal.
"""

import functools

import numpy as np

#: What a pair's number is divided by: word -> function of d_model (R47).
DIVISORS = {
    "half": lambda d_model: d_model / 2,
    "half_less_one": lambda d_model: max(d_model / 2 - 1, 1),
}


def angles(rows, d_model, divisor="half"):
    """pos / 10000^(i / divisor) for every position and pair i: [T D/2]."""
    position = np.arange(rows, dtype=np.float64)
    pair = np.arange(d_model // 2, dtype=np.float64)
    return position[:, None] / 10000.0 ** (pair / DIVISORS[divisor](d_model))


@functools.cache
def interleaved_table(rows, d_model, divisor="half"):
    """Sine on even features, cosine on odd ones (R6): float64 [T D]."""
    angle = angles(rows, d_model, divisor)
    both = np.stack([np.sin(angle), np.cos(angle)], axis=-1)
    return both.reshape(rows, d_model)


@functools.cache
def halves_table(rows, d_model, divisor="half"):
    """All sines, then all cosines (R6): float64 [T D]."""
    angle = angles(rows, d_model, divisor)
    return np.concatenate([np.sin(angle), np.cos(angle)], axis=-1)


TABLES = {"interleaved": interleaved_table, "halves": halves_table}


def exact(table):
    """A table as it is, float64."""
    return table


def in_float32(table):
    """A table rounded to float32, and stored in float64 again."""
    return table.astype(np.float32).astype(np.float64)


#: What is done to a table once it is made (R47).
ROUNDINGS = {"none": exact, "float32": in_float32}
