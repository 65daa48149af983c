"""Find ε.

A port's layer norm has an ε that nobody wrote down. `x` and `y`, both [T D],
are its input and its output, without scale and bias:

    y = (x - mean) / √(variance + ε)

Return ε as a float, right to one part in a million. The inputs are small, so
that it matters. Begin with the variance of a row of y.
"""


def epsilon(x, y):
    raise NotImplementedError
