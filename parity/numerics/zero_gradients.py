"""Gradients that are zero by mathematics: of a key's bias, above all.

The bias adds the same number to all scores of a query, which does not change
their softmax. The computed gradient is rounding, and Adam divides it by its
own size: training moves the bias, by no more than its steps allow, and no
output changes.

Not so where rotary positions turn it with its key: then it adds another number
to each score.
"""

import numpy as np

KEY, QUERY = "key.bias", "query.bias"


def is_zero(name, positions=""):
    """Whether the gradient by the weight of this canonical name is zero.

    Args:
        name: it may have anything before the weight's own.
        positions: the config's word for them.
    """
    turned = positions.startswith("rotary") and "cross_attention" not in name
    return name.endswith(KEY) and not turned


def beside(name):
    """The name of the query's bias, against which rounding is measured."""
    return name.removesuffix(KEY) + QUERY


def scale(name, arrays, positions=""):
    """The scale beside which a tensor is zero, or None if it need not be.

    Args:
        name: of a gradient or of one of Adam's moments; it may have anything
            before the weight's own name.
        arrays: name -> array, those of the query's bias among them.
        positions: the config's word for them.
    """
    return (float(np.abs(arrays[beside(name)]).max())
            if is_zero(name, positions) else None)
