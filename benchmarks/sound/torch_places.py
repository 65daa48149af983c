"""Pooling, graphs, windows, rows that are gathered, rolled and sorted."""

import torch
from torch import nn

from benchmarks.sound.pair import sound
from benchmarks.sound.torch_parts import Attention, D, V
from benchmarks.sound.weights import (
    arrays, both, call, drawn, give, normal, tokens, twins)

fn = nn.functional
IDS = tokens(3, 7)
IDS[1, 5:] = IDS[2, 3:] = 0


class Pooled(nn.Module):
    """Embedding, a layer and a pool of (x [B T D], seen [B T])."""

    def __init__(self, pool, width=D):
        super().__init__()
        self.embeddings = nn.Embedding(V, D, padding_idx=0)
        self.encoder = nn.Sequential(nn.Linear(D, D), nn.Tanh())
        self.classifier = nn.Linear(width, 3)
        self.pool = pool

    def forward(self, ids):
        x = self.encoder(self.embeddings(ids))
        return self.classifier(self.pool(x, ids != 0))


def pooled(one, two, width=D):
    """Two models with these pools."""
    return twins(Pooled(one, width), Pooled(two, width), IDS)


def masked_mean(x, seen):
    """A sum over what is seen, and its count."""
    seen = seen[..., None].to(x.dtype)
    return (x * seen).sum(1) / seen.sum(1)


@sound
def mean_by_mask_or_rows():
    """A masked sum in a; the mean of each row's own in b."""
    return pooled(masked_mean, lambda x, seen: torch.stack(
        [row[kept].mean(0) for row, kept in zip(x, seen)]))


@sound
def mean_by_matmul():
    """A masked sum in a, a product with weights in b."""
    return pooled(masked_mean, lambda x, seen: torch.bmm(
        (seen.double() / seen.sum(1, keepdim=True))[:, None], x)[:, 0])


@sound
def max_by_fill_or_rows():
    """Unseen rows are -inf in a; left out in b."""
    return pooled(
        lambda x, seen: x.masked_fill(~seen[..., None], -torch.inf).amax(1),
        lambda x, seen: torch.stack([row[kept].max(0).values
                                     for row, kept in zip(x, seen)]))


@sound
def last_by_gather_or_index():
    """The last token: gather in a, an index in b."""
    def gather(x, seen):
        last = seen.sum(1) - 1
        return x.gather(1, last[:, None, None].expand(-1, 1, D)).squeeze(1)
    return pooled(gather, lambda x, seen: x[
        torch.arange(len(x)), seen.long().cumsum(1).argmax(1)])


@sound
def statistics_by_moments():
    """Mean and deviation, as speakers' embeddings: by std, or moments."""
    def moments(x, _):
        mean = x.mean(1)
        return torch.cat([mean, (x.square().mean(1) - mean.square()).sqrt()],
                         -1)
    return pooled(lambda x, _: torch.cat([x.mean(1), x.std(1, correction=0)],
                                         -1), moments, 2 * D)


@sound
def embedding_bag():
    """nn.EmbeddingBag in a, a lookup and a mean in b."""
    class Mean(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Embedding(V, D)

        def forward(self, ids):
            return self.table(ids).mean(1)

    def model(first):
        return nn.Sequential(first, nn.Linear(D, 8), nn.ReLU(),
                             nn.Linear(8, 3))
    return twins(model(nn.EmbeddingBag(V, D, mode="mean")), model(Mean()),
                 tokens(3, 5))


@sound
def embedding_by_one_hot():
    """A lookup in a, one-hot rows and a product in b."""
    class OneHot(nn.Embedding):
        def forward(self, ids):
            return fn.one_hot(ids, V).to(self.weight.dtype) @ self.weight

    def model(first):
        return nn.Sequential(first, nn.LayerNorm(D), nn.Linear(D, 3))
    return twins(model(nn.Embedding(V, D)), model(OneHot(V, D)),
                 tokens(2, 5))


EDGES = torch.tensor([[0, 1, 2, 3, 4, 0, 2, 5], [1, 2, 0, 4, 3, 3, 5, 2]])


class Messages(nn.Module):
    """Two layers of messages along edges; a function gathers them."""

    def __init__(self, gather):
        super().__init__()
        self.message, self.update = nn.Linear(D, D), nn.Linear(2 * D, D)
        self.readout, self.gather = nn.Linear(D, 3), gather

    def forward(self, nodes):
        for _ in range(2):
            got = self.gather(self.message(nodes))
            nodes = torch.tanh(self.update(torch.cat([nodes, got], -1)))
        return self.readout(nodes.sum(0))


def scattered(x):
    """Sums of messages by index_add."""
    return torch.zeros_like(x).index_add(0, EDGES[1], x[EDGES[0]])


def multiplied(x):
    """The same by an adjacency matrix."""
    matrix = torch.zeros(len(x), len(x), dtype=x.dtype)
    matrix[EDGES[1], EDGES[0]] = 1
    return matrix @ x


def looped(x):
    """The same, node by node."""
    return torch.stack([
        x[EDGES[0][EDGES[1] == node]].sum(0) for node in range(len(x))])


@sound
def messages_scattered_or_multiplied():
    """index_add in a, an adjacency matrix in b."""
    return twins(Messages(scattered), Messages(multiplied), normal(6, D))


@sound
def messages_scattered_or_looped():
    """index_add in a, a loop over nodes in b."""
    return twins(Messages(scattered), Messages(looped), normal(6, D))


class Windows(nn.Module):
    """Swin's shifted windows of 4, by view and roll, or by index."""

    def __init__(self, indexed):
        super().__init__()
        self.attn, self.fc = Attention(), nn.Linear(D, 3)
        self.attn.attend = lambda q, k, v: (
            q @ k.mT / 6 ** 0.5).softmax(-1) @ v
        self.indexed = indexed

    def forward(self, x):
        b, t, _ = x.shape
        if self.indexed:
            order = (torch.arange(t) + 2) % t
            made = torch.stack([self.attn(x[:, part])
                                for part in order.split(4)], 1).flatten(1, 2)
            y = torch.empty_like(x)
            y[:, order] = made
        else:
            y = self.attn(torch.roll(x, -2, 1).view(-1, 4, D))
            y = torch.roll(y.view(b, t, D), 2, 1)
        return self.fc(x + y)


@sound
def windows_rolled_or_indexed():
    """Windows are folded into the batch in a, run one by one in b."""
    return twins(Windows(False), Windows(True), normal(2, 8, D))


@sound
def class_token_joined_or_written():
    """A class token by cat in a, into an empty array in b."""
    class Classed(nn.Module):
        def __init__(self, joined):
            super().__init__()
            self.cls_token = nn.Parameter(torch.empty(1, 1, D))
            self.pos_embed = nn.Parameter(torch.empty(1, 6, D))
            self.attn, self.fc = Attention(), nn.Linear(D, 3)
            self.joined = joined

        def forward(self, x):
            b = len(x)
            if self.joined:
                x = torch.cat([self.cls_token.expand(b, -1, -1), x], 1)
                x = x + self.pos_embed
            else:
                y = x.new_empty(b, 6, D)
                y[:, :1] = self.cls_token + self.pos_embed[:, :1]
                y[:, 1:] = x + self.pos_embed[:, 1:]
                x = y
            return self.fc(self.attn(x)[:, -1])
    return twins(Classed(True), Classed(False), normal(2, 5, D))


@sound
def table_in_two_parts():
    """One table in a; in b special tokens have a table of their own."""
    class Parts(nn.Module):
        def __init__(self):
            super().__init__()
            self.special, self.words = nn.Embedding(4, D), nn.Embedding(
                V - 4, D)
            self.fc = nn.Linear(D, 3)

        def forward(self, ids):
            low = ids < 4
            x = torch.where(
                low[..., None], self.special(ids.clamp(max=3)),
                self.words((ids - 4).clamp(min=0)))
            return self.fc(x.mean(1))

    class One(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.fc = nn.Embedding(V, D), nn.Linear(D, 3)

        def forward(self, ids):
            return self.fc(self.embed(ids).mean(1))
    a, b = drawn(One()), drawn(Parts())
    table, = arrays(a.embed)
    give(b.special, table[:4])
    give(b.words, table[4:])
    give(b.fc, *arrays(a.fc))
    return both(a, b, tokens(3, 6))


@sound
def squeezed_and_excited():
    """Gates of channels: linear layers in a, 1×1 convolutions in b."""
    class Gates(nn.Module):
        def __init__(self, linear):
            super().__init__()
            self.stem = nn.Conv2d(3, 8, 3)
            self.down, self.up = (
                (nn.Linear(8, 4), nn.Linear(4, 8)) if linear
                else (nn.Conv2d(8, 4, 1), nn.Conv2d(4, 8, 1)))
            self.head, self.linear = nn.Conv2d(8, 2, 1), linear

        def forward(self, x):
            x = torch.relu(self.stem(x))
            y = x.mean((2, 3), keepdim=not self.linear)
            y = torch.sigmoid(self.up(torch.relu(self.down(y))))
            return self.head(x * (y[..., None, None] if self.linear else y))
    a, b = drawn(Gates(True)), drawn(Gates(False))
    for name in ("stem", "head"):
        give(getattr(b, name), *arrays(getattr(a, name)))
    for name in ("down", "up"):
        kernel, bias = arrays(getattr(a, name))
        give(getattr(b, name), kernel[None, None], bias)
    image = normal(2, 3, 7, 7)
    return call(a, image), call(b, image)
