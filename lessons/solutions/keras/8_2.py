from keras import ops


def layer_norm_backward(doutput, x, eps):
    mean, variance = ops.moments(x, axes=-1, keepdims=True)
    centered, root = x - mean, ops.sqrt(variance + eps)
    along = ops.mean(doutput * centered, axis=-1, keepdims=True)
    dx = doutput / root - centered * along / root**3
    return dx - ops.mean(dx, axis=-1, keepdims=True)
