import numpy as np


def cross_entropy(logits, labels, pad_id):
    shifted = logits - logits.max(axis=-1, keepdims=True)
    log_p = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    at_label = np.take_along_axis(log_p, labels[..., None], axis=-1)[..., 0]
    return float(-at_label[labels != pad_id].mean())
