import torch


def masked_softmax(scores, mask):
    hidden = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    return torch.softmax(hidden, dim=-1).masked_fill(~mask, 0)
