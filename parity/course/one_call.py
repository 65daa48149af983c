"""The exercise of lesson 14: what one call of a framework's layer wants."""

import numpy as np

from parity.check.cases import values
from parity.course.exercise import Exercise


def masks():
    """(mask [B 1 T S], heads); a query may see nothing."""
    for b, t, s, heads in ((2, 3, 4, 3), (3, 5, 5, 2), (2, 1, 6, 4)):
        mask = values(f"exercise 14.1 {t}", b, 1, t, s) > -0.3
        mask[0, 0, 0] = False
        yield mask, heads


def torch_mask(mask, heads):
    """torch's mask [B·H T S]: True hides."""
    return ~mask[:, 0].repeat(heads, axis=0)


EXERCISES = (
    Exercise(
        "14.1", "torch_mask", lambda: list(masks()), torch_mask,
        {"the mask is not turned round: torch's True means “may not attend”":
             lambda mask, heads: ~torch_mask(mask, heads),
         "the rows of the batch follow each other for each head, and not the "
         "heads for each row": lambda mask, heads: np.tile(
             ~mask[:, 0], (heads, 1, 1)),
         "every row of the batch has the mask of the first one":
             lambda mask, heads: torch_mask(
                 mask[:1].repeat(len(mask), axis=0), heads)}),
)
