"""Backward through a layer norm.

The forward pass was, over the last axis of x [B T D],

    y = (x - mean) / √(variance + ε),  the variance divided by D

Given `doutput`, the gradient with respect to y, return the gradient with
respect to x. x reaches y by three ways: as itself, through the mean, and
through the variance. Check yourself with your answer to exercise 8.3. Do it by
hand, without a framework's own derivatives.
"""


def layer_norm_backward(doutput, x, eps):
    raise NotImplementedError
