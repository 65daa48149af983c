from keras import ops


def merge(context):
    b, h, t, k = context.shape
    return ops.reshape(ops.swapaxes(context, 1, 2), (b, t, h * k))
