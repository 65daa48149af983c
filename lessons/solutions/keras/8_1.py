from keras import ops


def softmax_backward(dweights, weights):
    mean = ops.sum(dweights * weights, axis=-1, keepdims=True)
    return weights * (dweights - mean)
