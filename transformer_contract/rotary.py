"""The angles by which rotary positions turn, in float64 (Su et al. 2021).

    θ[pos, i] = pos / base^(2i / d_k)

Constants, like the tables of sinusoids, so they are here once for all four.
"""

import functools

import numpy as np

from transformer_contract.sinusoids import ROUNDINGS


@functools.cache
def rotations(rows, d_k, base, rounding):
    """Cosine and sine of every position's angles: float64 [T K/2] each.

    Args:
        rows: T, how many positions.
        d_k: the width of a head, even.
        base: 10000 in the paper.
        rounding: a word of ``position_rounding``.
    """
    position = np.arange(rows, dtype=np.float64)
    pair = np.arange(0, d_k, 2, dtype=np.float64)
    angle = position[:, None] / float(base) ** (pair / d_k)
    return tuple(
        ROUNDINGS[rounding](table) for table in (np.cos(angle), np.sin(angle)))


def of_config(config):
    """The tables of a config, for its longest source or target."""
    return rotations(max(config.max_length, config.source_length), config.d_k,
                     config.rotary_base, config.position_rounding)
