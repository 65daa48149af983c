"""A step further is a rotation.

The paper chose sines because there is one matrix for each distance k, the same
at every position, with

    shift(k, d_model) @ PE[pos]  =  PE[pos + k]

PE is the table of exercise 2.1. Return that matrix, [d_model d_model] of
float64. k may be negative. The sum formulas of sine and cosine are all that
you need; the matrix has blocks of 2 × 2 on its diagonal and zeros elsewhere.
"""


def shift(k, d_model):
    raise NotImplementedError
