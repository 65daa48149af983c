from keras import ops


def causal_mask(length):
    return ops.tril(ops.ones((1, 1, length, length), "bool"))
