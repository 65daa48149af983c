"""Rotary positions.

Later models add nothing to embeddings. They turn queries and keys instead:
features 2i and 2i + 1 of the row at position t are the coordinates of a point
in a plane, which is turned by the angle a = t / 10000^(2i / K):

    even' = even · cos(a) - odd · sin(a)
    odd'  = even · sin(a) + odd · cos(a)

`x` is [T K], its first row is position 0, and K is even. Return the turned
rows, [T K].
"""


def rotate(x):
    raise NotImplementedError
