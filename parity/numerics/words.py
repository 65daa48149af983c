"""A number in words, the same everywhere."""

import math


def number(error):
    """An error or a limit, short: two digits, 0 as 0, none as a dash."""
    if error is None:
        return "–"
    if error == 0:
        return "0"
    return f"{error:.1e}" if math.isfinite(error) else "inf"
