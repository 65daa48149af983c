from keras import ops


def smoothed_loss(logits, labels, pad_id, eps):
    log_p = ops.log_softmax(logits, axis=-1)
    at_label = ops.take_along_axis(log_p, labels[..., None], axis=-1)[..., 0]
    each = -(1 - eps) * at_label - eps * ops.mean(log_p, axis=-1)
    kept = ops.cast(ops.not_equal(labels, pad_id), "float64")
    return float(ops.sum(each * kept) / ops.sum(kept))
