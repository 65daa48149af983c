"""Why two inputs differ: the nearest thing to the user first.

Texts, images and sounds that differ themselves are told before what was made of
them. Nothing is told that does not come out on the arrays.
"""

import numpy as np

from parity.inputs import raw as kinds
from parity.inputs.ids import parting
from parity.inputs.numbers import length_parting, relation
from parity.inputs.pixels import is_image, pixels_parting
from parity.inputs.spectra import spectra_parting
from parity.inputs.texts import text_parting
from parity.tracing.trace import is_float


def cause(mine, other, before=({}, {})):
    """Why an input of b is not a's, in words; "" where it is not shown.

    Args:
        mine, other: a's and b's array, which differ.
        before: of a and of b, what ``raw.kept`` returned.
    """
    if words := raw_parting(*before):
        return words
    whole = {mine.dtype.kind, other.dtype.kind} <= {"i", "u"}
    if whole:
        return parting(mine, other, [each.get(kinds.PIECES, {})
                                     for each in before])
    if not (is_float(mine) and is_float(other)):
        return ""
    image, audio, rate = (before[0].get(key, before[1].get(key)) for key in (
        kinds.IMAGE, kinds.AUDIO, kinds.RATE))
    words = ""
    if audio is not None and rate is not None:
        words = spectra_parting(mine, other, audio, int(rate))
    elif is_image(mine) and is_image(other) and (
            image is not None or mine.shape == other.shape):
        words = pixels_parting(mine, other, image)
    if words:
        return words
    if mine.shape == other.shape:
        return relation(mine, other)
    return length_parting(mine, other)


def raw_parting(a, b):
    """Where what two models' inputs were made of differs, in words."""
    if kinds.TEXT in a and kinds.TEXT in b:
        if words := text_parting(a[kinds.TEXT], b[kinds.TEXT]):
            return words
    for key, what in ((kinds.IMAGE, "images"), (kinds.AUDIO, "sounds")):
        if key not in a or key not in b:
            continue
        one, two = np.asarray(a[key]), np.asarray(b[key])
        if one.shape != two.shape:
            return (f"the {what} are of shapes {[*one.shape]} in a and "
                    f"{[*two.shape]} in b")
        if not np.array_equal(one, two):
            why = relation(one, two) if is_float(one) and is_float(
                two) else ""
            return f"the {what} differ before they are processed" + (
                why and f": {why}")
    if kinds.RATE in a and kinds.RATE in b and a[kinds.RATE] != b[kinds.RATE]:
        return (f"the samples a second are {a[kinds.RATE]} in a and "
                f"{b[kinds.RATE]} in b")
    return ""
