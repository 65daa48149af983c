import numpy as np


def loss_backward(logits, labels, pad_id):
    e = np.exp(logits - logits.max(axis=-1, keepdims=True))
    p = e / e.sum(axis=-1, keepdims=True)
    right = np.eye(logits.shape[-1])[labels]
    kept = labels != pad_id
    return (p - right) * kept[..., None] / kept.sum()
