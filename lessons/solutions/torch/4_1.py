import torch


def causal_mask(length):
    return torch.ones(1, 1, length, length, dtype=torch.bool).tril()
