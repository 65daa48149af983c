from keras import ops


def softmax(scores):
    e = ops.exp(scores - ops.max(scores, axis=-1, keepdims=True))
    return e / ops.sum(e, axis=-1, keepdims=True)
