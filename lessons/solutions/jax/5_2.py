def merge(context):
    b, h, t, k = context.shape
    return context.swapaxes(1, 2).reshape(b, t, h * k)
