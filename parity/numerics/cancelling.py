"""Sums of which nearly all may cancel: a norm's gradients, and its mean.

A norm's one scale and one bias each have the sum over all values as gradient,
Σ g · normalized and Σ g; a mean and a deviation have one over the features. The
terms have the rounding of every step after them, each its own, so that the
sum's error is about that of a term times the root of the sum of their squares,
however little is left of the sum itself. Where two norms stand one behind the
other, nothing may be left: the second takes away what the first adds, and all
but ε of what it multiplies by. So the error is relative to the L2 norm of the
terms where that is larger than the sum's. Where nothing cancels it is not, and
of random signs the two are alike.

An RMS norm's mean square q has such a sum too, -Σ g · x / (2 (q + ε)^(3/2)).
Its terms need what the norm had while it ran: normalized n and q, of which
1 / (q + ε) is the mean of n² over q.

Sources: Higham, Accuracy and Stability of Numerical Algorithms, 2002, sections
2.8 and 4.2.
"""

import math

import numpy as np

#: A gradient -> the one of which the terms are; normalized has a mean square
#: of 1, and a mean's and a deviation's terms are as large as centered's.
TERMS = {"scale": "output", "bias": "output", "mean": "centered",
         "std": "centered"}

#: The gradients that are sums over all values only where there is one of them.
WEIGHTS = ("scale", "bias")


#: The gradient whose terms follow from values of the forward pass as well.
MEAN_SQUARE = "mean_square"


def least(name, arrays, values):
    """The L2 norm of the terms of a gradient, or 0 if it is no such sum.

    Args:
        name: of a gradient, "grad …".
        arrays: {name: gradient}, by every weight and step.
        values: {name: value} of every step of the forward pass.
    """
    norm, _, last = name.rpartition(".")
    if not norm.endswith("norm") or (
            last in WEIGHTS and arrays[name].size > 1):
        return 0.0
    terms = (terms_of_mean_square(norm, arrays, values)
             if last == MEAN_SQUARE
             else arrays.get(f"{norm}.{TERMS.get(last)}", 0))
    size = float(np.linalg.norm(terms))
    return size if math.isfinite(size) else 0.0


def least_mean(name, steps):
    """The L2 norm of a norm's means of |x|, or 0 if a step is no such mean.

    The mean of x of a row may be all but zero, as behind another norm. Then it
    has the rounding of x, which is relative to x and alike in a row, so that it
    adds up: the condition of a sum is Σ|x| / |Σ x| (Higham, section 4.2).

    Args:
        name: of a step forward.
        steps: {name: value}; centered [B T D] is x without its mean [B T 1].
    """
    norm, _, last = name.rpartition("mean")
    centered = steps.get(f"{norm}centered")
    if last or centered is None or norm and not norm.endswith("."):
        return 0.0
    size = float(np.linalg.norm(np.mean(
        np.abs(centered + steps[name]), axis=-1)))
    return size if math.isfinite(size) else 0.0


def terms_of_mean_square(norm, arrays, values):
    """g · x / (2 (q + ε)^(3/2)) of an RMS norm, [B T D]; 0 if it is unknown.
    """
    path = norm.removeprefix("grad ")
    normalized = values.get(f"{path}.normalized")
    if normalized is None:
        return 0
    square = values[f"{path}.{MEAN_SQUARE}"]
    share = np.mean(normalized**2, axis=-1, keepdims=True) / np.where(
        square, square, 1)
    return arrays[f"{norm}.normalized"] * normalized * share / 2
