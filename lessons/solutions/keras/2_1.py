from keras import ops


def positions(length, d_model):
    pair = ops.arange(d_model // 2, dtype="float64")
    place = ops.arange(length, dtype="float64")
    angle = place[:, None] / ops.power(10000.0, 2 * pair / d_model)
    table = ops.stack([ops.sin(angle), ops.cos(angle)], axis=-1)
    return ops.reshape(table, (length, d_model))
