"""The one gradient that mathematics makes zero: that of a key's bias.

It adds the same number to all scores of a query, which a softmax does not
see. What is computed is rounding, and Adam divides it by its own size: in
training the bias wanders, by no more than its steps allow, and no output
feels it.
"""

import numpy as np

KEY, QUERY = "key.bias", "query.bias"


def is_zero(name):
    """Whether the gradient by the weight of this canonical name is zero."""
    return name.endswith(KEY)


def beside(name):
    """The name of the query's bias, against which rounding is measured."""
    return name.removesuffix(KEY) + QUERY


def scale(name, arrays):
    """What a tensor is zero beside, or None where it need not be zero.

    Args:
        name: of a gradient or of one of Adam's moments; it may have anything
            before the weight's own name.
        arrays: name -> array, those of the query's bias among them.
    """
    return float(np.abs(arrays[beside(name)]).max()) if is_zero(name) else None
