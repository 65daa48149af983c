"""The dtypes that can be checked, once: their names, units and NumPy's own."""

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
