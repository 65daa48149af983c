from keras import ops


def split(x, heads):
    b, t, d = x.shape
    return ops.swapaxes(ops.reshape(x, (b, t, heads, d // heads)), 1, 2)
