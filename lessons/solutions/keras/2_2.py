from keras import ops


def shift(k, d_model):
    pair = ops.arange(d_model // 2, dtype="float64")
    angle = k / ops.power(10000.0, 2 * pair / d_model)
    beside = ops.reshape(  # sin, 0, sin, 0, …, sin
        ops.stack([ops.sin(angle), 0 * angle], axis=-1), (-1,))[:-1]
    return (ops.diag(ops.repeat(ops.cos(angle), 2))
            + ops.diag(beside, k=1) - ops.diag(beside, k=-1))
