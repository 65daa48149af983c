from keras import ops


def epsilon(x, y):
    before, after = ops.var(x, axis=-1), ops.var(y, axis=-1)
    # after = before / (before + ε)
    return float(ops.mean(before / after - before))
