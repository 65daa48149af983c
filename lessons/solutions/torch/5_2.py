def merge(context):
    b, h, t, k = context.shape
    return context.transpose(1, 2).reshape(b, t, h * k)
