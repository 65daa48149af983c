import numpy as np


def smoothed_loss(logits, labels, pad_id, eps):
    shifted = logits - logits.max(axis=-1, keepdims=True)
    log_p = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    at_label = np.take_along_axis(log_p, labels[..., None], axis=-1)[..., 0]
    each = -(1 - eps) * at_label - eps * log_p.mean(axis=-1)
    return float(each[labels != pad_id].mean())
