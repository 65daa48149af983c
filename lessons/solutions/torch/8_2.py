import torch


def layer_norm_backward(doutput, x, eps):
    variance, mean = torch.var_mean(x, dim=-1, correction=0, keepdim=True)
    centered, root = x - mean, torch.sqrt(variance + eps)
    along = (doutput * centered).mean(dim=-1, keepdim=True)
    dx = doutput / root - centered * along / root**3
    return dx - dx.mean(dim=-1, keepdim=True)
