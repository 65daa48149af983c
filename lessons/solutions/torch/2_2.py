import torch


def shift(k, d_model):
    pair = torch.arange(d_model // 2, dtype=torch.float64)
    angle = k / 10000.0 ** (2 * pair / d_model)
    sin, cos = angle.sin(), angle.cos()
    blocks = torch.stack([cos, sin, -sin, cos], dim=-1).unflatten(-1, (2, 2))
    return torch.block_diag(*blocks)
