import torch


def norm_of(x, y, eps=1e-6):
    mean = x.mean(dim=-1, keepdim=True)
    biased = x.var(dim=-1, correction=0, keepdim=True)
    makes = {
        "layer": (x - mean) / torch.sqrt(biased + eps),
        "std": (x - mean) / (x.std(dim=-1, keepdim=True) + eps),
        "rms": x / torch.sqrt((x * x).mean(dim=-1, keepdim=True) + eps)}
    return min(makes, key=lambda name: (makes[name] - y).abs().max())
