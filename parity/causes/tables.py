"""What tables of sines and cosines, or of frequencies, say of themselves."""

import itertools

import numpy as np

from parity.numerics.words import apart, number

#: How near numbers are that follow from one another.
NEAR = 1e-6


def frequencies(table):
    """The frequencies by which a table of positions turns, or None.

    Args:
        table: of cosines or sines [positions, frequencies], the first
            position being 0; axes of length 1 are left out.

    Returns:
        Radians a position [frequencies], each between 0 and π/2 of a table of
        sines, and π of one of cosines.
    """
    table = np.asarray(table)
    table = table.reshape([size for size in table.shape if size != 1])
    if table.ndim != 2 or len(table) < 3 or table.dtype.kind != "f" or not (
            np.abs(table) <= 1 + NEAR).all():
        return None
    places = np.arange(len(table))[:, None]
    for inverse, function in ((np.arccos, np.cos), (np.arcsin, np.sin)):
        found = inverse(np.clip(table[1], -1, 1))
        if np.abs(function(places * found) - table).max() <= NEAR:
            return found
    return None


def base_of(found):
    """The base of frequencies base ** (-i / n), i from 0 to n - 1, or None."""
    if found is None or len(found) < 2 or found.dtype.kind != "f" or not (
            found > 0).all() or abs(found[0] - 1) > NEAR or not (
            np.diff(found) < 0).all():
        return None
    steps = np.diff(np.log(found))
    if np.abs(steps - steps[0]).max() > 1e-4 * abs(steps[0]) or not steps[0]:
        return None
    return float(np.exp(-steps.mean() * len(found)))


def bases(truth, actual):
    """(base in a, base in b) in words, where both tables, or arrays of
    frequencies, have one and the two are not the same; else None."""
    one, two = (
        base_of(table if table.ndim == 1 else frequencies(table))
        for table in map(np.asarray, (truth, actual)))
    if None in (one, two) or np.isclose(one, two, rtol=1e-6):
        return None
    return apart(*(float(f"{base:.6g}") for base in (one, two)))


def turned(truth, actual):
    """How the frequencies of a table are changed, in words, or ""."""
    one, two = map(frequencies, (truth, actual))
    if one is None or two is None or len(one) != len(two):
        return ""
    with np.errstate(all="ignore"):
        ratio = two / one
    if not np.isfinite(ratio).all() or np.allclose(ratio, 1, rtol=1e-5):
        return ""
    if np.allclose(ratio, ratio[0], rtol=1e-5):
        return f"every frequency {number(ratio[0])} times a's"
    shown = ", ".join(f"{each:.4g}" for each in ratio[:8])
    return (f"its frequencies are {shown}{', …' if len(ratio) > 8 else ''} "
            "times a's: they are scaled in one of the two")


def normalised(kernel, norms):
    """The axes over which a kernel's norms are some, or None.

    Args:
        kernel: any array.
        norms: one number for each place of one of its axes; axes of length 1
            are left out.

    Returns:
        A tuple of axes, as few as give all the norms.
    """
    kernel, norms = np.asarray(kernel), np.asarray(norms).reshape(-1)
    if norms.size < 2 or not norms.all():
        return None
    for axis, size in enumerate(kernel.shape):
        if size != norms.size:
            continue
        shape = [1] * kernel.ndim
        shape[axis] = size
        square = (kernel / norms.reshape(shape)) ** 2
        for count in range(1, kernel.ndim):
            for axes in itertools.combinations(range(kernel.ndim), count):
                if np.allclose(square.sum(axes), 1, rtol=1e-9):
                    return axes
    return None
