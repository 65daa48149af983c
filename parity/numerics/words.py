"""Errors, limits and lists as text, the same everywhere."""

import math


def apart(one, two):
    """Two numbers in one digit more than tells them apart, or in six."""
    digits = 6
    while digits < 17 and f"{one:.{digits}g}" == f"{two:.{digits}g}":
        digits += 1
    digits += digits > 6
    return f"{one:.{digits}g}", f"{two:.{digits}g}"


def listed(names):
    """Names as a sentence has them: a, b and c."""
    *most, last = names
    return f"{', '.join(most)} and {last}" if most else last


def number(error):
    """An error or a limit in two digits, 0 as 0, None as a dash."""
    if error is None:
        return "–"
    if error == 0:
        return "0"
    return f"{error:.1e}" if math.isfinite(error) else "inf"
