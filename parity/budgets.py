"""How far apart two computations of one number may be.

float64 is the gate: sound implementations agree to about 1e-15 and the weakest
real bug shows at 4e-9, so 1e-12 tells them apart with room on both sides. In
lower precision there is no such gap, so the limit follows the problem: twice
the error that NumPy itself makes at that precision on the same numbers, plus a
few units of rounding, under a cap.

A limit is never raised to silence a failure.
"""

import math

#: The distance from 1 to the next number.
EPS = {
    "float64": 2.0**-52,
    "float32": 2.0**-23,
    "float16": 2.0**-10,
    "bfloat16": 2.0**-7,
}

#: The dtypes that can be checked, most exact first.
DTYPES = tuple(EPS)

FLOAT64_LIMIT = 1e-12


def limit(dtype, own_error):
    """The limit of a component, a step or an output.

    Args:
        dtype: what the port computed in.
        own_error: the error that the reference makes in that dtype on the same
            inputs, measured like the port's; not used for float64.
    """
    eps = EPS[dtype]
    match dtype:
        case "float64":
            return FLOAT64_LIMIT
        case "float32":
            return min(2 * own_error + 4 * eps, 16 * eps)
        case _:
            if not math.isfinite(own_error):
                own_error = 0.0
            return 2 * own_error + 2 * eps
