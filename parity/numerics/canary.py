"""Full precision, set and then proved: the canary.

Frameworks multiply float32 matrices in TF32 or bfloat16 where the hardware
likes that better and a setting allows it. The settings are made by each port's
engine; here a product of float32 matrices is measured, so that the settings
are believed only when they took effect.
"""

import numpy as np

from contract import random
from parity.numerics.dtypes import EPS

SIZE = 256

#: Clean products are off by 2 eps, TF32 by 2500, bfloat16 by 20000.
CANARY_LIMIT = 30


def canary(engine, device):
    """The error of a 256 x 256 float32 product on a device, in units of eps.

    It is the relative L2 error of the whole product.
    """
    a, b = (random.uniform(random.key(seed), (SIZE, SIZE), -1, 1)
            .astype(np.float32) for seed in (1, 2))
    truth = a.astype(np.float64) @ b.astype(np.float64)
    found = engine.matmul(a, b, device)
    if found.dtype != np.float32:
        return float("inf")
    error = np.linalg.norm(found - truth) / np.linalg.norm(truth)
    return float(error / EPS["float32"])
