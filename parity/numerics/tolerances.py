"""How much two computations of one number may differ.

float64 decides: sound implementations agree to about 1e-15 and the weakest
real bug shows at 4e-9, so 1e-12 separates them with room on both sides. In
lower precision there is no such gap, so the limit follows the problem: twice
the error of NumPy itself at that precision on the same numbers, plus a few
units of rounding.

In float32 a component alone and a model's outputs have a maximum limit as
well, so that a badly chosen case cannot raise its own limit. A step deep
inside a model has none: the mean of a row of a sixth layer is a small
difference of large numbers with six layers' rounding, and NumPy's own float32
has an error of up to 19 eps there. No fault can hide in it, because the same
step is checked alone under the maximum, and in float64 at 1e-12.
"""

import math

from parity.numerics.dtypes import (  # noqa: F401
    BOTH, DTYPES, EPS, TIERS)

FLOAT64_LIMIT = 1e-12

#: float64's limit of one gradient, which has the rounding of every step after
#: it in the model; and the largest, where a model multiplies rounding. The
#: weakest real bug is larger.
FLOAT64_GRADIENT, WEAKEST = 1e-10, 1e-9

#: Limit of a weight, a moment or a loss after steps of training in lockstep: a
#: rounding in a gradient is one in a weight, and so in the next gradient.
LOCKSTEP_LIMIT = 1e-10

#: Limits in eps where NumPy's own result in that dtype is not given. Sound
#: components stay below 7 in float32 and below 2 in 16 bits.
FIXED_EPS = {"float32": 16, "float16": 4, "bfloat16": 4}

#: How many units of rounding two models of anybody may differ by: at a step in
#: a model, at one alone on the same inputs, and in a gradient. NumPy's own
#: float32 has an error of up to 19 in six layers, and two such are compared.
MANY = {"float32": (64, 16, 128), "float16": (8, 4, 16),
        "bfloat16": (8, 4, 16)}


def limit(dtype, own_error, inner=False):
    """The limit of a component, a step or an output.

    Args:
        dtype: what the port computed in.
        own_error: the error of the reference in that dtype on the same inputs,
            measured like the port's; not used for float64.
        inner: whether it is a step of a component inside a larger one.
    """
    eps, own_error = EPS[dtype], known(own_error)
    match dtype:
        case "float64":
            return FLOAT64_LIMIT
        case "float32":
            bound = 2 * own_error + 4 * eps
            return bound if inner else min(bound, 16 * eps)
        case _:
            return 2 * own_error + 2 * eps


def known(own_error):
    """An error, or 0 where none is finite: else no error would be too large."""
    return own_error if math.isfinite(own_error) else 0.0


def fixed_limit(dtype):
    """The limit where NumPy's own result in a dtype is not known."""
    if dtype == "float64":
        return FLOAT64_LIMIT
    return FIXED_EPS[dtype] * EPS[dtype]


def tier_limit(tier, own_error):
    """The limit in a precision tier, as in 16 bits: it follows the reference's
    own error with such products, and a few units of what they read."""
    return 2 * known(own_error) + 2 * TIERS[tier].eps


def largest_limit(dtype):
    """The largest limit that an output can have, whatever NumPy's own error.

    In 16 bits that has no maximum of its own; twice what two models of anybody
    may differ by has room for a sound one.
    """
    if dtype in BOTH:
        return fixed_limit(dtype)
    return MANY[dtype][-1] * EPS[dtype]


def gradient_limit(dtype, own_error, of_one=False):
    """The limit of a gradient in a whole model; float64 and float32.

    Args:
        dtype: as in limit.
        own_error: as in limit; in float64 by how much it moves where each
            weight moves by a unit in its last place: in usual models by 1e-15,
            in one of 24 layers, with dropout of 0.75, by 4e-11.
        of_one: of one weight or step, rather than of all weights as one
            vector. Each has the rounding of every step after it.
    """
    eps, own_error = EPS[dtype], known(own_error)
    if dtype == "float64":
        least, most = ((FLOAT64_GRADIENT, WEAKEST) if of_one
                       else (FLOAT64_LIMIT, FLOAT64_GRADIENT))
        return min(max(least, 8 * own_error), most)
    if of_one:
        return 8 * own_error + 64 * eps
    return min(2 * own_error + 4 * eps, 32 * eps)


def lockstep_limit(dtype, own_error):
    """The limit of what a step of training in lockstep changes or finds.

    Each has the rounding of all gradients before it; float64 and float32.
    """
    if dtype == "float64":
        return LOCKSTEP_LIMIT
    return gradient_limit(dtype, own_error, of_one=True)


def score_limit(dtype, own_error):
    """The limit of a hypothesis' score; float64 and float32.

    A score adds up one log-probability a token, and each is a small difference
    of a logit and the log of a sum, which have the rounding of every step
    before them.
    """
    if dtype == "float64":
        return FLOAT64_LIMIT
    return 8 * known(own_error) + 64 * EPS[dtype]


def model_limits(dtype):
    """The limits between two models of anybody in a dtype: of a step in a
    model, of one alone on the same inputs, of a gradient, of a parameter."""
    if dtype not in EPS:
        return math.nan, math.nan, math.nan, 0.0
    eps = EPS[dtype]
    if dtype == "float64":
        return FLOAT64_LIMIT, FLOAT64_LIMIT, FLOAT64_GRADIENT, eps
    return *(many * eps for many in MANY[dtype]), eps
