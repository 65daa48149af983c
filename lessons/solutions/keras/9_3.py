from keras import ops


def clipped(gradients, limit):
    norm = ops.sqrt(sum(ops.sum(g * g) for g in gradients))
    factor = limit / norm if norm > limit else 1.0
    return tuple(g * factor for g in gradients)
