"""Which norm was it.

A norm without scale and bias made `y` of `x`, both [T D], with ε = 1e-6. Look
at the numbers and return which of three it was:

    "layer"    (x - mean) / √(variance + ε), the variance biased
    "std"      (x - mean) / (std + ε), the deviation unbiased
    "rms"      x / √(mean of x² + ε)

The mean and the deviation of a row of y tell it, but some x are as small as
√ε, and then no norm's deviation is near 1: compute what each would make of x.
D is from 3 to 9 here: small enough to see a difference that a width of 512
would hide.
"""


def norm_of(x, y):
    raise NotImplementedError
