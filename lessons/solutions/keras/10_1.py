from keras import ops


def cross_entropy(logits, labels, pad_id):
    log_p = ops.log_softmax(logits, axis=-1)
    at_label = ops.take_along_axis(log_p, labels[..., None], axis=-1)[..., 0]
    kept = ops.cast(ops.not_equal(labels, pad_id), "float64")
    return float(-ops.sum(at_label * kept) / ops.sum(kept))
