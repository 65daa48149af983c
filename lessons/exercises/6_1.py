"""A layer norm.

Normalise `x` [B T D] over its last axis, as Ba et al. 2016 have it:

    (x - mean) / √(variance + ε) · scale + bias

The variance is biased: the mean of the squares, divided by D. `scale` and
`bias` are [D], `eps` is a number. Each position is normalised by itself.
"""


def layer_norm(x, scale, bias, eps):
    raise NotImplementedError
