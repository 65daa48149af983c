"""Gradients that are sums of which nearly all may cancel: those of a norm.

A norm's one scale and one bias each have the sum over all values as gradient,
Σ g · normalized and Σ g; a mean and a deviation have one over the features. The
terms have the rounding of every step after them, each its own, so that the
sum's error is about that of a term times the root of the sum of their squares,
however little is left of the sum itself. Where two norms stand one behind the
other, nothing may be left: the second takes away what the first adds, and all
but ε of what it multiplies by. So the error is relative to the L2 norm of the
terms where that is larger than the sum's. Where nothing cancels it is not, and
of random signs the two are alike.

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


def least(name, arrays):
    """The L2 norm of the terms of a gradient, or 0 if it is no such sum.

    Args:
        name: of a gradient.
        arrays: {name: gradient}, by every weight and step.
    """
    norm, _, last = name.rpartition(".")
    terms = arrays.get(f"{norm}.{TERMS.get(last)}")
    if not norm.endswith("norm") or terms is None or (
            last in WEIGHTS and arrays[name].size > 1):
        return 0.0
    size = float(np.linalg.norm(terms))
    return size if math.isfinite(size) else 0.0
