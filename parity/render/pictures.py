"""Arrays as a reader sees them: numbers where they are few, else heat maps.

A map is a PNG in the page itself, a pixel an entry, in cividis, which is read
alike with every kind of colour vision and in grey. What it shows stands beside
it in words: mean, spread and range.
"""

import base64
import collections
import dataclasses
import io
import json
import math

import numpy as np
from markupsafe import Markup

from parity import quiet

#: How many entries are shown as numbers, and how many as a map at most.
FEW, MANY = 48, 20_000

#: Up to how many entries a map tells its values to 16 bits.
EXACT = 4096

#: How wide a map is at most, in entries, before a single row is folded, and
#: how wide it is then.
WIDE, FOLD = 288, 50


def number(x, digits=4):
    """A number for reading: few digits, a true minus sign."""
    if isinstance(x, (bool, np.bool_)):
        return "1" if x else "0"
    if isinstance(x, (int, np.integer)):
        return f"{x}".replace("-", "−")
    if not math.isfinite(x):
        return "NaN" if x != x else ("∞" if x > 0 else "−∞")
    if x == 0:
        return "0"
    return f"{x:.{digits}g}".replace("-", "−")


def percent(share):
    """A share in percent."""
    return f"{100 * share:.3g} %"


def error(difference):
    """A Difference's error, short."""
    if difference.error is None:
        return "none"
    if difference.error == 0:
        return "0"
    return f"{difference.error:.1e}".replace("-", "−")


@dataclasses.dataclass(frozen=True)
class Summary:
    """Mean, spread (standard deviation) and range of the finite numbers of an
    array, in words; ``apart`` counts the others, such as "3 of 96 are −∞".
    """

    mean: str
    spread: str
    low: str
    high: str
    apart: str = ""

    @classmethod
    def of(cls, array):
        """The Summary of an array."""
        array = np.asarray(array)
        if array.dtype.kind == "b":
            array = array.astype(int)
        others = array[~np.isfinite(array)]
        finite = array[np.isfinite(array)]
        words = ", ".join(
            f"{count} {'is' if count == 1 else 'are'} {name}"
            for name, count in collections.Counter(
                map(number, others.tolist())).items())
        apart = f"of {array.size} {words}" if words else ""
        if not finite.size:
            return cls(*["none"] * 4, apart)
        return cls(number(float(finite.mean())), number(float(finite.std())),
                   number(finite.min()), number(finite.max()), apart)


def tiled(array):
    """An array as one matrix, NaN between the matrices that it is made of.

    The heads of an attention stand side by side.
    """
    array = np.asarray(array, np.float64)
    while array.ndim > 3 or (array.ndim == 3 and len(array) == 1):
        array = array[0]
    if array.ndim < 3:
        return np.atleast_2d(array)
    gap = np.full((array.shape[1], 1), np.nan)
    parts = [part for matrix in array for part in (matrix, gap)]
    return np.concatenate(parts[:-1], axis=1)


def png(matrix, low=None, high=None):
    """A matrix as a PNG's data URI; what is not finite is transparent."""
    quiet.start_matplotlib()
    from matplotlib import colormaps
    from matplotlib.image import imsave
    finite = matrix[np.isfinite(matrix)]
    low = finite.min(initial=np.inf) if low is None else low
    high = finite.max(initial=-np.inf) if high is None else high
    low, high = (low, high) if low <= high else (0, 0)
    unit = np.clip((matrix - low) / ((high - low) or 1), 0, 1)
    pixels = colormaps["cividis"](np.ma.masked_invalid(unit), bytes=True)
    pixels[..., 3] = np.where(np.isfinite(matrix), 255, 0)
    file = io.BytesIO()
    about: dict = {"Software": None}  # the same bytes by every version
    imsave(file, pixels, format="png", metadata=about)
    return "data:image/png;base64," + base64.b64encode(
        file.getvalue()).decode()


def touchable(matrix, tile=0, names=None, fold=0, shares=False):
    """A matrix as the attributes from which a page tells each of its values.

    To 16 bits between its ends, and to 8 where it is large.

    Args:
        tile: the width of one of the matrices that stand side by side.
        fold: how many entries the row has that was folded to this matrix.
        names: (of its rows, of its columns), if they have any.
        shares: whether its values are told in percent.
    """
    finite = matrix[np.isfinite(matrix)]
    if not finite.size:
        return ""
    infinite = {int(place): number(float(matrix.flat[place]))
                for place in np.flatnonzero(np.isinf(matrix))}
    low, high = float(finite.min()), float(finite.max())
    kind = np.uint16 if matrix.size <= EXACT else np.uint8
    with np.errstate(invalid="ignore"):
        unit = np.clip((matrix - low) / ((high - low) or 1), 0, 1)
    steps = np.round(np.nan_to_num(unit) * np.iinfo(kind).max).astype(kind)
    told = Markup(
        ' data-values="{}" data-shape="{} {}" data-range="{!r} {!r}"').format(
            base64.b64encode(steps.tobytes()).decode(), *matrix.shape,
            low, high)
    if tile:
        told += Markup(' data-tile="{}"').format(tile)
    if fold:
        told += Markup(' data-fold="{}"').format(fold)
    if infinite:
        told += Markup(' data-infinite="{}"').format(json.dumps(infinite))
    if shares:
        told += Markup(" data-shares")
    if names:
        told += Markup(' data-names="{}"').format(json.dumps(names))
    return told


def heat_map(array, what, low=None, high=None, zoom=None):
    """An array as an image with words in its place, or "" if too large.

    Args:
        array: any shape; see tiled.
        what: the words.
        low, high: the ends of the scale; those of the array by default.
        zoom: a pixel's size; one that fits by default.
    """
    if np.size(array) > MANY:
        return ""
    matrix, fold = tiled(array), 0
    tile = np.shape(array)[-1] if matrix.shape[1] > np.shape(array)[-1] else 0
    if len(matrix) == 1 and matrix.size > WIDE and not tile:
        matrix, fold = folded(matrix), matrix.size
        if low is None and high is None:
            low, high = ends(matrix)
    rows, across = matrix.shape
    tall = (max(1, min(10, WIDE // across, 240 // rows)) if across < WIDE
            else 1)
    zoom = zoom or tall
    height = max(rows * (zoom if across < WIDE else max(4, 64 // rows)), 12)
    return Markup(
        '<img class="map" alt="{}" src="{}" width="{}" height="{}"{}>').format(
            what, png(matrix, low, high), across * zoom, height,
            touchable(matrix, tile, fold=fold))


def folded(row):
    """A long row as a matrix of FOLD columns, NaN where the row has ended."""
    rows = -(-row.size // FOLD)
    matrix = np.full(rows * FOLD, np.nan)
    matrix[:row.size] = row.ravel()
    return matrix.reshape(rows, FOLD)


def ends(matrix):
    """The ends of a scale on which a few outliers do not hide the others."""
    finite = matrix[np.isfinite(matrix)]
    return np.percentile(finite, [1, 99]) if finite.size else (0.0, 0.0)


def few(array):
    """Whether an array is shown as numbers."""
    return np.size(array) <= FEW


def numbers(array, digits=4):
    """The numbers of a small array, row by row, as text."""
    array = np.asarray(array)
    if array.ndim == 0:
        return [[number(array[()], digits)]]
    flat = array.reshape(-1, array.shape[-1])
    if array.shape[-1] == 1:
        flat = flat.T
    return [[number(x, digits) for x in row] for row in flat.tolist()]
