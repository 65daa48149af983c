"""The paper's table of positions.

Return an array [length d_model] of float64, for positions 0, 1, 2, …:

    PE[pos, 2i]     = sin(pos / 10000^(2i / d_model))
    PE[pos, 2i + 1] = cos(pos / 10000^(2i / d_model))

Here i is the number of a *pair* of features: both of a pair have one
frequency. d_model is even.
"""


def positions(length, d_model):
    raise NotImplementedError
