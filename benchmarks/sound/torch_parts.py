"""Models of PyTorch that pairs share: shells around what is to be compared."""

import math

import torch
from torch import nn

D, H, V, F = 24, 4, 20, 40


class Model(nn.Module):
    """Embedding, some blocks, a norm and a head: ids [B T] -> [B T V]."""

    def __init__(self, *blocks):
        super().__init__()
        self.embed_tokens = nn.Embedding(V, D)
        self.layers = nn.ModuleList(blocks)
        self.norm = nn.LayerNorm(D)
        self.lm_head = nn.Linear(D, V, bias=False)

    def forward(self, ids):
        x = self.embed_tokens(ids)
        for layer in self.layers:
            x = layer(x)
        return self.lm_head(self.norm(x))


class Body(nn.Module):
    """The trunk of Port, as GPT-2's names have it."""

    def __init__(self, *blocks):
        super().__init__()
        self.wte = nn.Embedding(V, D)
        self.h = nn.Sequential(*blocks)
        self.ln_f = nn.LayerNorm(D)

    def forward(self, ids):
        return self.ln_f(self.h(self.wte(ids)))


class Port(nn.Module):
    """The same as Model, by other names and nested otherwise."""

    def __init__(self, *blocks):
        super().__init__()
        self.transformer = Body(*blocks)
        self.head = nn.Linear(D, V, bias=False)

    def forward(self, ids):
        return self.head(self.transformer(ids))


class Frame(nn.Module):
    """A linear layer before and one behind: x [… D] -> [… 3]."""

    def __init__(self, core, width=D):
        super().__init__()
        self.proj_in = nn.Linear(D, D)
        self.core = core
        self.classifier = nn.Linear(width, 3)

    def forward(self, x):
        return self.classifier(self.core(torch.tanh(self.proj_in(x))))


class Vision(nn.Module):
    """A convolution, a core and a pooled head: [B 3 S S] -> [B 5]."""

    def __init__(self, core, channels=8):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, padding=1)
        self.core = core
        self.head = nn.Linear(channels, 5)

    def forward(self, x):
        x = self.core(torch.relu(self.stem(x)))
        return self.head(x.mean((2, 3)))


class Seeing(nn.Module):
    """The same as Vision, in one Sequential."""

    def __init__(self, core, channels=8):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), core,
            nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 5))

    def forward(self, x):
        return self.net(x)


def split(x, heads=H):
    """[B T D] -> [B H T K]."""
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


def merge(x):
    """[B H T K] -> [B T D]."""
    return x.transpose(1, 2).flatten(2)


def causal(t):
    """Whether a query may see a key: [T T]."""
    return torch.ones(t, t, dtype=torch.bool).tril()


class Attention(nn.Module):
    """Causal self-attention, as in a textbook."""

    def __init__(self, groups=H, bias=True):
        super().__init__()
        self.q_proj = nn.Linear(D, D, bias)
        self.k_proj = nn.Linear(D, D * groups // H, bias)
        self.v_proj = nn.Linear(D, D * groups // H, bias)
        self.o_proj = nn.Linear(D, D, bias)
        self.groups = groups

    def forward(self, x):
        q = split(self.q_proj(x))
        k = split(self.k_proj(x), self.groups)
        v = split(self.v_proj(x), self.groups)
        return self.o_proj(merge(self.attend(q, k, v)))

    def attend(self, q, k, v):
        """Queries, keys and values [B H T K] -> contexts."""
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
        scores = scores.masked_fill(~causal(q.shape[2]), float("-inf"))
        return scores.softmax(-1) @ v


class Mlp(nn.Module):
    """Two layers."""

    def __init__(self, act=nn.functional.gelu):
        super().__init__()
        self.fc1 = nn.Linear(D, F)
        self.fc2 = nn.Linear(F, D)
        self.act = act

    def forward(self, x):
        return self.fc2(self.act(self.fc1(x)))


class Block(nn.Module):
    """Pre-norm: x + attention, then x + MLP."""

    def __init__(self, attention=None, mlp=None, norm=nn.LayerNorm):
        super().__init__()
        self.ln_1 = norm(D)
        self.attn = attention or Attention()
        self.ln_2 = norm(D)
        self.mlp = mlp or Mlp()

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))
