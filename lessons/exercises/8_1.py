"""Backward through a softmax.

weights = softmax(scores), over the last axis. Given `dweights`, the gradient of
a loss with respect to the weights, and the `weights` themselves, both [... S],
return the gradient with respect to the scores, of the same shape.

The derivative of weight i by score j is  w_i (1 - w_i)  if i = j,  and -w_i w_j
if not. Multiply out, and the sum over i becomes short: no loop over i and j is
needed, and the scores are not either. Do it by hand, without a framework's own
derivatives.
"""


def softmax_backward(dweights, weights):
    raise NotImplementedError
