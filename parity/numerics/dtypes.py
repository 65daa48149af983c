"""The dtypes that can be checked, once: their names, units and NumPy's own."""

import dataclasses

import ml_dtypes
import numpy as np

#: The distance from 1 to the next number, most exact dtype first.
EPS = {
    "float64": 2.0**-52,
    "float32": 2.0**-23,
    "float16": 2.0**-10,
    "bfloat16": 2.0**-7,
}

#: The dtypes that can be checked, most exact first.
DTYPES = tuple(EPS)

#: Those in which a whole model trains, searches and is checked by default.
BOTH = DTYPES[:2]

#: Name -> NumPy's dtype.
NUMPY = {name: np.dtype(getattr(ml_dtypes, name, name)) for name in DTYPES}


@dataclasses.dataclass(frozen=True)
class Tier:
    """A way to compute between dtypes; weights are float32.

    Attributes:
        eps: the distance from 1 to the next number that a product reads.
        short: the 16-bit dtype that takes part, or "".
    """

    eps: float
    short: str = ""


#: bfloat16x3 reads a matrix as two parts of 8 bits each.
TIERS = {
    "tf32": Tier(2.0**-10),
    "bfloat16x3": Tier(2.0**-15),
    "mixed-bfloat16": Tier(EPS["bfloat16"], "bfloat16"),
    "mixed-float16": Tier(EPS["float16"], "float16"),
}

#: The tiers in which models are trained.
MIXED = tuple(name for name, tier in TIERS.items() if tier.short)
