"""Checks of a model's inputs; each error is one sentence.

Most look at shapes and dtypes only, which are known under jit as well;
``tokens`` and ``meaning`` look at numbers too, so they are called where these
enter, outside of any compiled function. Compiled, an id outside the table is an
error in torch, and NaN or another row in the others. Without ``mask`` every
framework broadcasts a mask of the wrong shape.
"""

import numpy as np

from parity_io.errors import InputError, plural

#: What is told of arrays that hold no numbers, by NumPy's kind of dtype.
NO_NUMBERS = {"U": "text", "S": "text", "O": "no numbers"}


def kind(value, wanted, name, what):
    """Check that a value is of a type, ``wanted``, which has that name."""
    if not isinstance(value, wanted):
        raise InputError(
            f"the {what} came as {type(value).__name__}; give {name}.")


def device(name, present):
    """The name of a device, once it is one of those that are here."""
    if name not in present:
        raise InputError(
            f"there is no device {name!r} here; choose one of "
            f"{', '.join(present)}.")
    return name


def tokens(ids, vocab, max_length, what):
    """Check token ids [B T] against a vocabulary and the longest sequence."""
    ids = np.asarray(ids)
    whole(NO_NUMBERS.get(ids.dtype.kind, ids.dtype), ids.shape, what)
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


def whole(dtype, shape, what):
    """Check by dtype and shape alone that ids are whole numbers [B T]."""
    if len(shape) != 2 or not _name(dtype).startswith(("int", "uint")):
        raise InputError(
            f"the {what} ids are {_name(dtype)} of shape {list(shape)}; give "
            "whole numbers of shape [batch, length]."
        )


def _name(dtype):
    """A dtype of any framework, as NumPy calls it."""
    return getattr(dtype, "name", str(dtype)).rpartition(".")[2]


def length(size, max_length, what="input"):
    """Check a sequence length against the rows of the position table."""
    if size > max_length:
        raise InputError(
            f"the {what} sequence has {size} tokens, but the position table "
            f"has {max_length} rows; shorten it or raise max_length."
        )


def pairs(sources, targets):
    """Check that a batch has as many sources as targets."""
    if sources != targets:
        raise InputError(
            f"the source has {plural(sources, 'sequence')} and the target "
            f"{targets}; give as many of one as of the other."
        )


def mask(mask, wanted, what="mask"):
    """Check that a mask is boolean and fits scores [B H T S] as it stands.

    Each axis must be 1 or equal; True means "may attend".
    """
    if _name(mask.dtype) not in ("bool", "bool_"):
        raise InputError(
            f"the {what} is {_name(mask.dtype)}; give booleans, True where a "
            "query may attend (0 and 1 or 0 and -inf mean different things in "
            "different systems)."
        )
    shape, wanted = tuple(mask.shape), tuple(wanted)
    fits = len(shape) == len(wanted) and all(
        a == b or a == 1 for a, b in zip(shape, wanted)
    )
    if not fits:
        raise InputError(
            f"the {what} has shape {list(shape)} where {list(wanted)} is "
            "needed; each axis must be equal or 1."
        )


def given(found, own, what):
    """Check a user's mask by dtype and shape, beside the ids' own.

    Each query of a target has a row of its own. One row for all, as of padding
    alone, would let each of them read what is later.
    """
    mask(found, own.shape, f"{what} mask")
    if found.shape[2] == 1 and own.shape[2] not in (1, None):
        raise InputError(
            f"the {what} mask has one row for all queries; give each its own, "
            f"in the shape {list(own.shape)}."
        )


def meaning(found, own, what):
    """Check, by NumPy's arrays, that a mask is not the inverse of the ids' own.

    One that shares nothing with it is an inverse, or hides everything.
    """
    if own.any() and not (found & own).any():
        raise InputError(
            f"the {what} mask allows nothing that the ids' own allows, as its "
            "inverse would; give True where a token may be read."
        )
