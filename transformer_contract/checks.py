"""Checks of a model's inputs; each error is one sentence.

The checks look at shapes and dtypes only, which are known under jit as well;
``tokens`` also looks at the ids, so it is called where ids enter, outside of
any compiled function. Without it JAX and Keras return NaN for an id outside the
table; without ``mask`` every framework broadcasts a mask of the wrong shape.
"""

import numpy as np

from transformer_contract.errors import InputError


def tokens(ids, vocab, max_length, what):
    """Check token ids [B T] against a vocabulary and the longest sequence."""
    ids = np.asarray(ids)
    if ids.ndim != 2 or not np.issubdtype(ids.dtype, np.integer):
        raise InputError(
            f"the {what} ids are {ids.dtype} of shape {list(ids.shape)}; give "
            "whole numbers of shape [batch, length]."
        )
    if ids.size == 0:
        raise InputError(
            f"the {what} ids are empty (shape {list(ids.shape)}); give at "
            "least one sequence of at least one token."
        )
    length(ids.shape[1], max_length, what)
    outside = (ids < 0) | (ids >= vocab)
    if outside.any():
        row, column = np.argwhere(outside)[0]
        raise InputError(
            f"the {what} id {ids[row, column]} at [{row}, {column}] is outside "
            f"the vocabulary; ids run from 0 to {vocab - 1}."
        )


def length(size, max_length, what="input"):
    """Check a sequence length against the rows of the position table."""
    if size > max_length:
        raise InputError(
            f"the {what} sequence has {size} tokens, but the position table "
            f"has {max_length} rows; shorten it or raise max_length."
        )


def mask(mask, scores_shape):
    """Check that a mask is boolean and fits scores [B H T S] as it stands.

    Each axis must be 1 or equal; True means "may attend".
    """
    kind = getattr(mask.dtype, "name", str(mask.dtype)).rpartition(".")[2]
    if kind not in ("bool", "bool_"):
        raise InputError(
            f"the mask is {kind}; give booleans, True where a query may "
            "attend (0 and 1 or 0 and -inf mean different things in "
            "different systems)."
        )
    shape, wanted = tuple(mask.shape), tuple(scores_shape)
    fits = len(shape) == len(wanted) and all(
        a == b or a == 1 for a, b in zip(shape, wanted)
    )
    if not fits:
        raise InputError(
            f"the mask has shape {list(shape)} where the scores have "
            f"{list(wanted)}; each axis must be equal or 1."
        )
