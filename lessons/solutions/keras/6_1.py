from keras import ops


def layer_norm(x, scale, bias, eps):
    centered = x - ops.mean(x, axis=-1, keepdims=True)
    variance = ops.mean(centered * centered, axis=-1, keepdims=True)
    return centered / ops.sqrt(variance + eps) * scale + bias
