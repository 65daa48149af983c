"""An image resized, as the libraries do it: separable weights by axis.

Pillow and torchvision with ``antialias`` widen a filter by the factor by which
the image shrinks; OpenCV and ``torch.nn.functional.interpolate`` do not.
"""

import dataclasses
import functools
import itertools
from collections.abc import Callable

import numpy as np


def _cubic(a, x):
    """Keys (1981), eq. 15, with a free parameter a."""
    x = np.abs(x)
    return np.where(x < 1, ((a + 2) * x - (a + 3)) * x * x + 1, np.where(
        x < 2, (((x - 5) * x + 8) * x - 4) * a, 0))


#: Filter -> (function, how far it reaches).
FILTERS: dict[str, tuple[Callable, float]] = {
    "box": (lambda x: ((x > -0.5) & (x <= 0.5)) * 1.0, 0.5),
    "bilinear": (lambda x: np.maximum(1 - np.abs(x), 0), 1),
    "hamming": (lambda x: np.where(np.abs(x) < 1, np.sinc(x) * (
        0.54 + 0.46 * np.cos(np.pi * x)), 0), 1),
    "bicubic": (functools.partial(_cubic, -0.5), 2),
    "bicubic (a = -0.75)": (functools.partial(_cubic, -0.75), 2),
    "lanczos": (lambda x: np.where(np.abs(x) < 3, np.sinc(x) * np.sinc(
        x / 3), 0), 3),
}

NEAREST = "nearest"

#: How libraries make a size whole.
WHOLE: tuple[Callable[[float], int], ...] = (int, round)

#: Pillow rounds after each axis, other libraries at the end or not at all.
NEVER, EACH, END = ROUNDINGS = (
    "none", "to whole levels after each axis", "to whole levels at the end")


@dataclasses.dataclass(frozen=True)
class Resizing:
    """How an image is brought to a size.

    Attributes:
        resampling: a key of FILTERS, or NEAREST.
        antialias: whether the filter is widened where the image shrinks.
        corners: whether the corner pixels stay where they are.
        resized: [height, width] before it is cropped.
        crop: [height, width] of the middle that is kept.
        rounding: when levels become whole numbers, one of ROUNDINGS.
    """

    resampling: str
    antialias: str
    corners: str
    resized: tuple
    crop: tuple
    rounding: str

    def __call__(self, image, step=1):
        """An image [H W C] of levels 0 to 255, resized.

        Args:
            image: floating.
            step: of rows and columns every step-th is made.
        """
        for axis in (1, 0):  # Pillow's order
            long, short = self.resized[axis], self.crop[axis]
            first = (long - short) // 2
            some = weights(
                image.shape[axis], long, self.resampling,
                self.antialias == "on", self.corners == "aligned")[
                first:first + short:step]
            image = np.moveaxis(np.tensordot(
                some, image, (1, axis)), 0, axis)
            if self.rounding == EACH or (self.rounding == END and not axis):
                image = np.clip(np.floor(image + 0.5), 0, 255)
        return image


@functools.lru_cache(256)
def weights(long, short, resampling, antialias, corners):
    """How much of each of ``long`` pixels is in each of ``short``."""
    if long == short:
        return np.eye(long)
    scale = ((long - 1) / max(short - 1, 1) if corners else long / short)
    at = np.arange(short)
    if resampling == NEAREST:
        there = np.floor((at + 0.5) * scale if antialias else at * scale)
        return np.eye(long)[there.astype(int).clip(0, long - 1)]
    function, reach = FILTERS[resampling]
    wide = max(scale, 1.0) if antialias else 1.0
    centre = at * scale if corners else (at + 0.5) * scale - 0.5
    made = np.zeros((short, long))
    for i, middle in enumerate(centre):
        first = int(np.floor(middle - reach * wide))
        last = int(np.ceil(middle + reach * wide)) + 1
        places = np.arange(first, last)
        if antialias:  # what lies outside has no part
            places = places[(places >= 0) & (places < long)]
        some = function((places - middle) / wide)
        np.add.at(made[i], places.clip(0, long - 1), some / some.sum())
    return made


def every(given, made):
    """The Resizings that may bring an image of one size to another.

    Args:
        given: [height, width] of the image.
        made: [height, width] of the model's.
    """
    sizes = dict.fromkeys([made, *_shortest(given, made)])
    ways = [(name, "on", "free") for name in (NEAREST, *FILTERS)
            if "=" not in name]
    ways += [(NEAREST, "off", "free"), *(
        (name, "off", corners) for name in ("bilinear", "bicubic",
                                            "bicubic (a = -0.75)")
        for corners in ("free", "aligned"))]
    for resized in sizes:
        for way in ways if resized != given else [("none", "-", "-")]:
            for rounding in ROUNDINGS:
                yield Resizing(*way, resized, made, rounding)


def _shortest(given, made):
    """Sizes of which ``made`` is the middle, the shape being kept."""
    for share in (1, 256 / 224, 1 / 0.875, 1 / 0.9, 1 / 0.95):
        for first, whole in itertools.product(WHOLE, repeat=2):
            short = first(max(made) * share)
            factor = short / min(given)
            size = tuple(short if side == min(given) else whole(side * factor)
                         for side in given)
            if all(long >= wanted for long, wanted in zip(size, made)):
                yield size
    if all(long >= wanted for long, wanted in zip(given, made)):
        yield given
