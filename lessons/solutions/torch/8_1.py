def softmax_backward(dweights, weights):
    mean = (dweights * weights).sum(dim=-1, keepdim=True)
    return weights * (dweights - mean)
