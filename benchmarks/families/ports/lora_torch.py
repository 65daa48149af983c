"""Linear layers with LoRA, rank-stabilised or not, in a small network."""

import torch
from torch import nn
from torch.nn import functional


class Lora(nn.Module):
    """x W + b + s x A B, with s = alpha / rank."""

    def __init__(self, given, width, rank, alpha):
        super().__init__()
        self.base = nn.Linear(given, width)
        self.a = nn.Parameter(torch.zeros(rank, given))
        self.b = nn.Parameter(torch.zeros(width, rank))
        self.scaling = alpha / rank

    def forward(self, x):
        low = functional.linear(functional.linear(x, self.a), self.b)
        return self.base(x) + self.scaling * low


class Model(nn.Module):
    def __init__(self, c):
        super().__init__()
        width = c["width"]
        self.q = Lora(width, width, 4, 16)
        self.k = nn.Linear(width, width)
        self.v = Lora(width, width, 4, 16)
        self.o = nn.Linear(width, width)
        self.norm = nn.LayerNorm(width)
        self.fc = Lora(width, 2 * width, 2, 4)
        self.out = nn.Linear(2 * width, width)

    def forward(self, x):
        q, k, v = self.q(x), self.k(x), self.v(x)
        scores = q @ k.mT * q.shape[-1] ** -0.5
        x = self.norm(x + self.o(scores.softmax(-1) @ v))
        return x + self.out(functional.gelu(self.fc(x)))
