"""Recurrent layers and state spaces, written in other ways."""

import torch
from torch import nn

from benchmarks.sound.pair import sound
from benchmarks.sound.torch_parts import D, V
from benchmarks.sound.weights import both, drawn, normal, tokens, twins

fn = nn.functional
S = 6


class Tagger(nn.Module):
    """Embedding, a core [B T D] -> [B T S] and a head of its last step."""

    def __init__(self, core, width=S):
        super().__init__()
        self.embedding = nn.Embedding(V, D)
        self.rnn = core
        self.out = nn.Linear(width, 3)

    def forward(self, ids):
        x = self.rnn(self.embedding(ids))
        return self.out((x[0] if isinstance(x, tuple) else x)[:, -1])


class LstmByHand(nn.Module):
    """nn.LSTM as a loop over one matrix product."""

    def __init__(self):
        super().__init__()
        self.weight_ih_l0 = nn.Parameter(torch.empty(4 * S, D))
        self.weight_hh_l0 = nn.Parameter(torch.empty(4 * S, S))
        self.bias_ih_l0 = nn.Parameter(torch.empty(4 * S))
        self.bias_hh_l0 = nn.Parameter(torch.empty(4 * S))

    def forward(self, x):
        h = c = x.new_zeros(x.shape[0], S)
        made = []
        for t in range(x.shape[1]):
            gates = x[:, t] @ self.weight_ih_l0.T + h @ self.weight_hh_l0.T
            i, f, g, o = (gates + self.bias_ih_l0 + self.bias_hh_l0
                          ).chunk(4, 1)
            c = f.sigmoid() * c + i.sigmoid() * g.tanh()
            h = o.sigmoid() * c.tanh()
            made.append(h)
        return torch.stack(made, 1)


class GruByHand(nn.Module):
    """nn.GRU as a loop; inputs are projected before it."""

    def __init__(self):
        super().__init__()
        self.weight_ih_l0 = nn.Parameter(torch.empty(3 * S, D))
        self.weight_hh_l0 = nn.Parameter(torch.empty(3 * S, S))
        self.bias_ih_l0 = nn.Parameter(torch.empty(3 * S))
        self.bias_hh_l0 = nn.Parameter(torch.empty(3 * S))

    def forward(self, x):
        given = fn.linear(x, self.weight_ih_l0, self.bias_ih_l0)
        h, made = x.new_zeros(x.shape[0], S), []
        for step in given.unbind(1):
            r, z, n = step.chunk(3, -1)
            hr, hz, hn = fn.linear(h, self.weight_hh_l0, self.bias_hh_l0
                                   ).chunk(3, -1)
            r, z = torch.sigmoid(r + hr), torch.sigmoid(z + hz)
            n = torch.tanh(n + r * hn)
            h = n + z * (h - n)
            made.append(h)
        return torch.stack(made, 1)


def like(layer, hand):
    """A tagger with a library's layer, and one by hand."""
    a = drawn(Tagger(layer))
    b = drawn(Tagger(hand))
    for name in ("embedding", "rnn", "out"):
        getattr(b, name).load_state_dict(getattr(a, name).state_dict())
    return both(a, b, tokens(2, 6))


@sound
def lstm_by_hand():
    """nn.LSTM in a, a loop in b."""
    return like(nn.LSTM(D, S, batch_first=True), LstmByHand())


@sound
def gru_by_hand():
    """nn.GRU in a; a loop behind one projection in b."""
    return like(nn.GRU(D, S, batch_first=True), GruByHand())


class Cells(nn.Module):
    """A loop over a library's cell."""

    def __init__(self, cell):
        super().__init__()
        self.cell = cell

    def forward(self, x):
        state, made = None, []
        for step in x.transpose(0, 1):
            state = self.cell(step, state)
            made.append(state[0] if isinstance(state, tuple) else state)
        return torch.stack(made).transpose(0, 1)


@sound
def lstm_by_cells():
    """nn.LSTM in a, nn.LSTMCell in b."""
    return twins(Tagger(nn.LSTM(D, S, batch_first=True)),
                 Tagger(Cells(nn.LSTMCell(D, S))), tokens(2, 6))


@sound
def gru_by_cells():
    """nn.GRU in a, nn.GRUCell in b."""
    return twins(Tagger(nn.GRU(D, S, batch_first=True)),
                 Tagger(Cells(nn.GRUCell(D, S))), tokens(2, 6))


@sound
def rnn_by_cells():
    """nn.RNN in a, nn.RNNCell in b."""
    return twins(Tagger(nn.RNN(D, S, batch_first=True)),
                 Tagger(Cells(nn.RNNCell(D, S))), tokens(2, 6))


@sound
def bidirectional_as_two():
    """bidirectional=True in a; two layers, one on flipped steps, in b."""
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.forwards, self.backwards = (
                nn.LSTM(D, S, batch_first=True) for _ in "12")

        def forward(self, x):
            back = self.backwards(x.flip(1))[0].flip(1)
            return torch.cat([self.forwards(x)[0], back], -1)
    return twins(Tagger(nn.LSTM(D, S, batch_first=True, bidirectional=True),
                        2 * S), Tagger(Two(), 2 * S), tokens(2, 6))


@sound
def two_layers_as_stack():
    """num_layers=2 in a, two layers in b, steps first."""
    class Stack(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList([nn.GRU(D, S), nn.GRU(S, S)])

        def forward(self, x):
            x = x.transpose(0, 1)
            for layer in self.layers:
                x, _ = layer(x)
            return x.transpose(0, 1)
    return twins(Tagger(nn.GRU(D, S, 2, batch_first=True)), Tagger(Stack()),
                 tokens(2, 6))


class Decay(nn.Module):
    """hₜ = a hₜ₋₁ + xₜ, by a function."""

    def __init__(self, scan):
        super().__init__()
        self.norm = nn.LayerNorm(D)
        self.rate, self.out = nn.Linear(D, S), nn.Linear(D, S)
        self.scan = scan

    def forward(self, x):
        x = self.norm(x)
        return self.scan(torch.sigmoid(self.rate(x)), self.out(x))


def stepwise(a, x):
    """A loop over time: [B T S]."""
    h, made = torch.zeros_like(x[:, 0]), []
    for t in range(x.shape[1]):
        h = a[:, t] * h + x[:, t]
        made.append(h)
    return torch.stack(made, 1)


def doubling(a, x):
    """The same in log₂ T steps."""
    step = 1
    while step < x.shape[1]:
        x = x + a * fn.pad(x, (0, 0, step, 0))[:, :-step]
        a = a * fn.pad(a, (0, 0, step, 0), value=1.0)[:, :-step]
        step *= 2
    return x


def as_matrix(a, x):
    """The same as one lower-triangular matrix, as Mamba-2."""
    logs = a.log().cumsum(1)
    t = x.shape[1]
    matrix = (logs[:, :, None] - logs[:, None]).masked_fill(
        ~torch.ones(t, t).bool().tril()[..., None], -torch.inf).exp()
    return torch.einsum("btsd,bsd->btd", matrix, x)


@sound
def scan_stepwise_or_doubling():
    """A loop in a, an associative scan in b."""
    return twins(Tagger(Decay(stepwise)), Tagger(Decay(doubling)),
                 tokens(2, 7))


@sound
def scan_stepwise_or_matrix():
    """A loop in a, a decay matrix in b."""
    return twins(Tagger(Decay(stepwise)), Tagger(Decay(as_matrix)),
                 tokens(2, 7))


class Selective(nn.Module):
    """Mamba's scan; the discrete step in the loop, or before it."""

    def __init__(self, before):
        super().__init__()
        self.dt, self.b = nn.Linear(D, D), nn.Linear(D, S, bias=False)
        self.c, self.out = nn.Linear(D, S, bias=False), nn.Linear(D, S)
        self.a_log = nn.Parameter(torch.empty(D, S))
        self.d = nn.Parameter(torch.empty(D))
        self.before = before

    def forward(self, x):
        dt, a = fn.softplus(self.dt(x)), -torch.exp(self.a_log)
        b, c = self.b(x), self.c(x)
        h, made = x.new_zeros(x.shape[0], D, S), []
        if self.before:
            decay = torch.exp(torch.einsum("btd,ds->btds", dt, a))
            given = torch.einsum("btd,bts->btds", dt * x, b)
            for t in range(x.shape[1]):
                h = decay[:, t] * h + given[:, t]
                made.append(torch.einsum("bds,bs->bd", h, c[:, t]))
            y = torch.stack(made, 1) + self.d * x
        else:
            for t in range(x.shape[1]):
                h = h * (dt[:, t, :, None] * a).exp() + (
                    dt[:, t, :, None] * b[:, t, None]) * x[:, t, :, None]
                made.append((h @ c[:, t, :, None]).squeeze(-1)
                            + x[:, t] * self.d)
            y = torch.stack(made, 1)
        return self.out(y)


@sound
def selective_scan_discretised_before():
    """Δ is applied step by step in a, to all steps at once in b."""
    return twins(Tagger(Selective(False)), Tagger(Selective(True)),
                 tokens(2, 6))


class Retention(nn.Module):
    """Retention: all pairs at once, or a state that runs along."""

    def __init__(self, recurrent):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(D, S) for _ in range(3))
        self.recurrent = recurrent

    def forward(self, x):
        q, k, v, rate = self.q(x), self.k(x), self.v(x), 0.9
        t = x.shape[1]
        if not self.recurrent:
            gap = torch.arange(t)[:, None] - torch.arange(t)
            decay = torch.where(gap >= 0, rate ** gap.clamp(min=0).double(),
                                0.0)
            return (q @ k.mT * decay) @ v
        state, made = x.new_zeros(x.shape[0], S, S), []
        for i in range(t):
            state = rate * state + k[:, i, :, None] * v[:, i, None]
            made.append((q[:, i, None] @ state)[:, 0])
        return torch.stack(made, 1)


@sound
def retention_parallel_or_recurrent():
    """All pairs in a, a running state in b."""
    return twins(Tagger(Retention(False)), Tagger(Retention(True)),
                 tokens(2, 6))


@sound
def convolution_kernel_or_recurrence():
    """A linear state space: unrolled in a, a long convolution in b."""
    class Space(nn.Module):
        def __init__(self, convolved):
            super().__init__()
            self.rate, self.mix = (nn.Parameter(torch.empty(D)),
                                   nn.Parameter(torch.empty(D)))
            self.out, self.convolved = nn.Linear(D, 4), convolved

        def forward(self, x):
            a, t = torch.sigmoid(self.rate), x.shape[1]
            if self.convolved:
                kernel = self.mix[:, None] * a[:, None] ** (
                    torch.arange(t).double())
                y = fn.conv1d(fn.pad(x.mT, (t - 1, 0)),
                              kernel.flip(1)[:, None], groups=D).mT
                return self.out(y)
            h, made = torch.zeros_like(x[:, 0]), []
            for i in range(t):
                h = a * h + self.mix * x[:, i]
                made.append(h)
            return self.out(torch.stack(made, 1))
    return twins(Space(False), Space(True), normal(2, 7, D))
