import torch.nn.functional as F


def cross_entropy(logits, labels, pad_id):
    return float(F.cross_entropy(
        logits.flatten(0, 1), labels.flatten(), ignore_index=pad_id))
