def softmax_backward(dweights, weights):
    mean = (dweights * weights).sum(axis=-1, keepdims=True)
    return weights * (dweights - mean)
