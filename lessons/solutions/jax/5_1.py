def split(x, heads):
    b, t, d = x.shape
    return x.reshape(b, t, heads, d // heads).swapaxes(1, 2)
