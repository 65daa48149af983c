from keras import ops


def numerical_gradient(f, x, h=1e-5):
    steps = ops.reshape(h * ops.eye(ops.size(x)), (-1, *x.shape))
    slopes = [(f(x + step) - f(x - step)) / (2 * h) for step in steps]
    return ops.reshape(ops.convert_to_tensor(slopes, "float64"), x.shape)
