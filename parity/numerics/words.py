"""An error or a limit as text, the same everywhere."""

import math


def number(error):
    """An error or a limit in two digits, 0 as 0, None as a dash."""
    if error is None:
        return "–"
    if error == 0:
        return "0"
    return f"{error:.1e}" if math.isfinite(error) else "inf"
