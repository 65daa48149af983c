"""A test of full precision: the canary.

Frameworks multiply float32 matrices in TF32 or bfloat16 where the hardware is
faster that way and a setting allows it. Each port's engine makes the settings;
here a product of float32 matrices is measured, to prove that they took effect.
"""

import numpy as np

from transformer_contract import random
from parity.numerics.dtypes import EPS

SIZE = 256

#: Full precision has an error of 2 eps, TF32 of 2500, bfloat16 of 20000.
CANARY_LIMIT = 30


def canary(engine, device):
    """The error of a 256 x 256 float32 product on a device, in units of eps.

    It is the relative L2 error of the whole product.
    """
    a, b = (random.uniform(random.key(seed), (SIZE, SIZE), -1, 1)
            .astype(np.float32) for seed in (1, 2))
    truth = a.astype(np.float64) @ b.astype(np.float64)
    product = engine.matmul(a, b, device)
    if product.dtype != np.float32:
        return float("inf")
    error = np.linalg.norm(product - truth) / np.linalg.norm(truth)
    return float(error / EPS["float32"])
