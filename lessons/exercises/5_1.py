"""Split into heads.

`x` is [B T D], and D = heads · K. Return [B H T K]: head h has the features
from h · K to (h + 1) · K. A reshape to that shape has the right shape, and is
wrong.
"""


def split(x, heads):
    raise NotImplementedError
