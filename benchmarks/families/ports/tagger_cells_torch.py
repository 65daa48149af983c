"""The tagger with LSTM and GRU written out in torch."""

import torch
from torch import nn


class LSTM(nn.Module):
    """One direction; gates are input, forget, cell, output."""

    def __init__(self, given, width, back):
        super().__init__()
        self.width, self.back = width, back
        self.weight_ih = nn.Parameter(torch.zeros(4 * width, given))
        self.weight_hh = nn.Parameter(torch.zeros(4 * width, width))
        self.bias_ih = nn.Parameter(torch.zeros(4 * width))
        self.bias_hh = nn.Parameter(torch.zeros(4 * width))

    def forward(self, x):
        h = c = x.new_zeros(len(x), self.width)
        states = []
        for given in (x.flip(1) if self.back else x).unbind(1):
            gates = given @ self.weight_ih.T + self.bias_ih
            gates = gates + h @ self.weight_hh.T + self.bias_hh
            i, f, g, o = gates.chunk(4, -1)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(c)
            states.append(h)
        y = torch.stack(states, 1)
        return y.flip(1) if self.back else y


class GRU(nn.Module):
    """Gates are reset, update, new."""

    def __init__(self, given, width):
        super().__init__()
        self.width = width
        self.weight_ih = nn.Parameter(torch.zeros(3 * width, given))
        self.weight_hh = nn.Parameter(torch.zeros(3 * width, width))
        self.bias_ih = nn.Parameter(torch.zeros(3 * width))
        self.bias_hh = nn.Parameter(torch.zeros(3 * width))

    def forward(self, x):
        h, states = x.new_zeros(len(x), self.width), []
        for given in x.unbind(1):
            r, z, n = (given @ self.weight_ih.T + self.bias_ih).chunk(3, -1)
            r2, z2, n2 = (h @ self.weight_hh.T + self.bias_hh).chunk(3, -1)
            reset, update = torch.sigmoid(r + r2), torch.sigmoid(z + z2)
            new = torch.tanh(n + reset * n2)
            h = (1 - update) * new + update * h
            states.append(h)
        return torch.stack(states, 1)


class Tagger(nn.Module):
    def __init__(self, c):
        super().__init__()
        width = c["width"]
        self.words = nn.Embedding(29, width)
        self.forth = LSTM(width, width, back=False)
        self.back = LSTM(width, width, back=True)
        self.gru = GRU(2 * width, width)
        self.head = nn.Linear(3 * width, 7)

    def forward(self, ids):
        x = self.words(ids)
        x = torch.cat([self.forth(x), self.back(x)], -1)
        y = self.gru(x)
        return self.head(torch.cat([x, y], -1)), y[:, -1]


#: The original's parts -> ours.
NAMES = [(r"lstm\.(\w+)_l0_reverse", r"back.\1"),
         (r"lstm\.(\w+)_l0", r"forth.\1"), (r"gru\.(\w+)_l0", r"gru.\1")]


def build(arrays, config):
    """The model with torch's arrays."""
    from benchmarks.families.drawing import into_torch
    return into_torch(Tagger(config), arrays, NAMES)
