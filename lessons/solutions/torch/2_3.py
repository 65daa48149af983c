import torch


def rotate(x):
    length, width = x.shape
    pair = torch.arange(width // 2, dtype=x.dtype)
    angle = torch.arange(length)[:, None] / 10000.0 ** (2 * pair / width)
    sin, cos = angle.sin(), angle.cos()
    even, odd = x[:, 0::2], x[:, 1::2]
    return torch.stack([even * cos - odd * sin, even * sin + odd * cos],
                       dim=-1).flatten(1)
