import torch
import torch.nn.functional as F


def loss_backward(logits, labels, pad_id):
    right = F.one_hot(labels, logits.shape[-1])
    kept = labels != pad_id
    return (torch.softmax(logits, dim=-1) - right) * kept[..., None] / (
        kept.sum())
