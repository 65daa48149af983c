"""Graph networks: a convolution (GCN), attention (GAT), and a pooled head."""

import torch
from torch import nn
from torch.nn import functional


class Convolution(nn.Module):
    """D^-1/2 (A + 1) D^-1/2 x W."""

    def __init__(self, given, width):
        super().__init__()
        self.lin = nn.Linear(given, width, bias=False)
        self.bias = nn.Parameter(torch.zeros(width))

    def forward(self, x, edges):
        a = edges + torch.eye(len(edges))
        root = a.sum(1) ** -0.5
        return (root[:, None] * a * root) @ self.lin(x) + self.bias


class Attention(nn.Module):
    """Scores of neighbours, by a leaky sum of two parts."""

    def __init__(self, given, width, heads):
        super().__init__()
        self.heads = heads
        self.lin = nn.Linear(given, heads * width, bias=False)
        self.source = nn.Parameter(torch.zeros(heads, width))
        self.target = nn.Parameter(torch.zeros(heads, width))
        self.bias = nn.Parameter(torch.zeros(heads * width))

    def forward(self, x, edges):
        h = self.lin(x).unflatten(-1, (self.heads, -1))
        source, target = (h * self.source).sum(-1), (h * self.target).sum(-1)
        scores = target[:, None] + source[None]
        scores = functional.leaky_relu(scores, 0.2)
        kept = (edges + torch.eye(len(edges)) > 0)[..., None]
        weights = scores.masked_fill(~kept, -torch.inf).softmax(1)
        y = torch.einsum("tsh,shk->thk", weights, h)
        return y.flatten(1) + self.bias


class Model(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.first = Convolution(c["given"], c["width"])
        self.norm = nn.BatchNorm1d(c["width"])
        self.second = Attention(c["width"], c["width"], 2)
        self.head = nn.Linear(2 * c["width"], 3)

    def forward(self, x, edges):
        x = functional.relu(self.norm(self.first(x, edges)))
        x = functional.elu(self.second(x, edges))
        return self.head(x.mean(0, keepdim=True))
