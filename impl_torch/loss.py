"""Cross-entropy over the tokens that are not padding."""

import torch

from impl_torch.projection import log_softmax


def cross_entropy(logits, labels, pad_id, label_smoothing):
    """The mean loss of the labels that are not padding; 0 if all are (R23).

    F.cross_entropy with ``ignore_index`` equals it, but answers NaN there.
    """
    log_probs = log_softmax(logits)
    right = torch.gather(log_probs, -1, labels[..., None])[..., 0]
    spread = torch.mean(log_probs, dim=-1)
    losses = -((1 - label_smoothing) * right + label_smoothing * spread)
    kept = labels != pad_id
    count = torch.clamp(torch.sum(kept), min=1).to(logits.dtype)
    return torch.sum(torch.where(kept, losses, 0)) / count
