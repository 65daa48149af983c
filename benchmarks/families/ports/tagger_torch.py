"""A tagger: a convolution over letters, an LSTM both ways, a GRU, a head."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, c):
        super().__init__()
        width = c["width"]
        self.words = nn.Embedding(29, width)
        self.lstm = nn.LSTM(width, width, batch_first=True,
                            bidirectional=True)
        self.gru = nn.GRU(2 * width, width, batch_first=True)
        self.head = nn.Linear(3 * width, 7)

    def forward(self, ids):
        x, _ = self.lstm(self.words(ids))
        y, last = self.gru(x)
        return self.head(torch.cat([x, y], -1)), last[-1]
