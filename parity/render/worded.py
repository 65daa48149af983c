"""A matrix as a picture with words at its edges: a row a word of a sentence."""

import numpy as np
from markupsafe import Markup, escape

from parity.render import pictures

#: A cell's height, the greatest width of all columns, and room for words.
TALL, WIDE, ROOM = 13, 300, 44

#: As many letters of a word are shown.
LETTERS = 6


def map_of(matrix, rows, columns, what, shares=False):
    """A matrix [T X] as SVG, whose values a page tells by their words.

    Args:
        rows: a word for each row.
        columns: a word for each column, or None.
        what: the picture in words.
        shares: whether its values are shares, on a scale from 0 to 1.
    """
    ends = (0, 1) if shares else (None, None)
    matrix = np.asarray(matrix, np.float64)
    tall, wide = matrix.shape
    cell = TALL if columns else min(TALL, WIDE / wide)
    above, across = ROOM if columns else 2, round(wide * cell)
    width, height = ROOM + across, above + tall * TALL
    names = [rows, columns or list(range(wide))]
    parts = [Markup(
        '<svg class="worded" viewBox="0 0 {0} {1}" width="{0}" height="{1}" '
        'role="img" aria-label="{2}">').format(width, height, what)]
    parts.append(Markup(
        '<image href="{}" x="{}" y="{}" width="{}" height="{}" '
        'preserveAspectRatio="none" style="image-rendering:pixelated"{}/>'
    ).format(pictures.png(matrix, *ends), ROOM, above, across,
             tall * TALL, pictures.touchable(
                 matrix, names=names, shares=shares)))
    for i, word in enumerate(rows):
        parts.append(Markup(
            '<text x="{}" y="{}" text-anchor="end">{}</text>').format(
                ROOM - 4, above + (i + .75) * TALL, escape(word[:LETTERS])))
    for i, word in enumerate(columns or ()):
        x, y = ROOM + (i + .75) * cell, ROOM - 4
        parts.append(Markup(
            '<text x="{x}" y="{y}" transform="rotate(-90 {x} {y})">{t}</text>'
        ).format(x=x, y=y, t=escape(word[:LETTERS])))
    return Markup("").join(parts) + Markup("</svg>")
