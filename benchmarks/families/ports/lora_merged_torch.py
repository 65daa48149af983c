"""The same network with its adapters merged into the weights."""

from torch import nn
from torch.nn import functional


class Merged(nn.Module):
    def __init__(self, c):
        super().__init__()
        width = c["width"]
        self.q = nn.Linear(width, width)
        self.k = nn.Linear(width, width)
        self.v = nn.Linear(width, width)
        self.o = nn.Linear(width, width)
        self.norm = nn.LayerNorm(width)
        self.fc = nn.Linear(width, 2 * width)
        self.out = nn.Linear(2 * width, width)

    def forward(self, x):
        q, k, v = self.q(x), self.k(x), self.v(x)
        y = functional.scaled_dot_product_attention(q, k, v)
        x = self.norm(x + self.o(y))
        return x + self.out(functional.gelu(self.fc(x)))


def build(arrays, config):
    """The network with W + (alpha / rank) B A."""
    from benchmarks.families.drawing import into_torch
    merged = {name.replace(".base", ""): x for name, x in arrays.items()}
    for name, alpha in (("q", 16), ("v", 16), ("fc", 4)):
        a, b = arrays[f"{name}.a"], arrays[f"{name}.b"]
        merged[f"{name}.weight"] = arrays[f"{name}.base.weight"] + (
            alpha / len(a)) * (b @ a)
    return into_torch(Merged(config), merged)
