from keras import ops


def rotate(x):
    length, width = x.shape
    pair = ops.arange(width // 2, dtype="float64")
    place = ops.arange(length, dtype="float64")
    angle = place[:, None] / ops.power(10000.0, 2 * pair / width)
    sin, cos = ops.sin(angle), ops.cos(angle)
    even, odd = x[:, 0::2], x[:, 1::2]
    turned = [even * cos - odd * sin, even * sin + odd * cos]
    return ops.reshape(ops.stack(turned, axis=-1), (length, width))
