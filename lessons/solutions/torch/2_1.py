import torch


def positions(length, d_model):
    pair = torch.arange(d_model // 2, dtype=torch.float64)
    angle = torch.arange(length)[:, None] / 10000.0 ** (2 * pair / d_model)
    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)
