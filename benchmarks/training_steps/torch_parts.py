"""What pairs in PyTorch are made of: a regression, and a tagger."""

import numpy as np
import torch
from torch import nn

from parity.training.form import Training

fn = nn.functional


def batches(count=4, rows=8):
    """Inputs [rows 6] and targets [rows 3] in float64."""
    draw = np.random.default_rng(1)
    return [(draw.normal(size=(rows, 6)), draw.normal(size=(rows, 3)))
            for _ in range(count)]


def tensors(arrays):
    """A batch as tensors."""
    return tuple(map(torch.from_numpy, arrays))


def net(*more, seed=0):
    """A small net, float64; ``more`` stands behind its first layer."""
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(6, 12), *more, nn.Tanh(),
                         nn.Linear(12, 3)).double()


def regression(optimizer, loss=None, model=net, **more):
    """A function that makes a Training of a regression.

    Args:
        optimizer: a function of the parameters.
    """
    def make():
        made = model()
        own = optimizer(made.parameters())
        late = {name: value(own) if name == "schedule" else value
                for name, value in more.items()}
        return Training(made, loss or nn.MSELoss(), own,
                        [tensors(each) for each in batches()], **late)
    return make


def looped(step, model=net, given=batches):
    """A function that makes a Training with a loop by hand.

    Args:
        step: a function of (model, a dict that lasts, the step's number, the
            batch) that returns the loss.
    """
    def make():
        made, kept = model(), {}

        def loop():
            for number, batch in enumerate(given(), start=1):
                yield step(made, kept, number, tensors(batch))
        return Training(made, loop=loop)
    return make


def by_hand(update, loss=lambda y, t: ((y - t)**2).mean()):
    """A step whose update of a weight is written out.

    Args:
        update: a function of (weight, its gradient, a dict of its own, the
            step's number) that changes the weight.
    """
    def step(model, kept, number, batch):
        x, target = batch
        model.zero_grad()
        value = loss(model(x), target)
        value.backward()
        with torch.no_grad():
            for name, weight in model.named_parameters():
                update(weight, weight.grad, kept.setdefault(name, {}), number)
        return value
    return step


def adam(weight, gradient, kept, number, rate=1e-2, beta1=0.9, beta2=0.999,
         eps=1e-8, decay=0.0, form=""):
    """AdamW, written by hand; ``form`` says what is wrong with it."""
    if form == "coupled":
        gradient = gradient + decay * weight
    elif decay:
        weight.mul_(1 - rate * decay)
    kept["m"] = beta1 * kept.get("m", 0) + (1 - beta1) * gradient
    kept["v"] = beta2 * kept.get("v", 0) + (1 - beta2) * gradient**2
    c1, c2 = 1 - beta1**number, 1 - beta2**number
    if form == "uncorrected":
        c1 = c2 = 1
    if form == "before":
        move = kept["m"] * c2**0.5 / c1 / (kept["v"].sqrt() + eps)
    elif form == "inside":
        move = kept["m"] / c1 / (kept["v"] / c2 + eps).sqrt()
    else:
        move = kept["m"] / c1 / ((kept["v"] / c2).sqrt() + eps)
    weight.sub_(rate * move)


class BiasedBatchNorm(nn.BatchNorm1d):
    """Keeps the biased variance, as Flax and Keras do."""

    def forward(self, x):
        mean, var = x.mean(0), x.var(0, unbiased=False)
        with torch.no_grad():
            self.running_mean.lerp_(mean, self.momentum)
            self.running_var.lerp_(var, self.momentum)
        return ((x - mean) / (var + self.eps).sqrt() * self.weight
                + self.bias)


def texts(count=4, rows=4, length=7, pad=0):
    """Token ids [rows length], padded with ``pad``."""
    draw = np.random.default_rng(2)
    made = []
    for _ in range(count):
        ids = draw.integers(2, 10, size=(rows, length))
        for row in range(1, rows):
            ids[row, length - row:] = pad
        made.append(ids)
    return made


class Tagger(nn.Module):
    """Logits [rows length 10] of token ids."""

    def __init__(self):
        torch.manual_seed(0)
        super().__init__()
        self.embed, self.norm = nn.Embedding(10, 16), nn.LayerNorm(16)
        self.head = nn.Linear(16, 10)
        self.double()

    def forward(self, ids):
        return self.head(self.norm(self.embed(ids)))


def tagging(loss, accumulate=1, optimizer=None, given=texts):
    """A function that makes a Training of the next token.

    Args:
        loss: a function of (logits [N 10], labels [N]) or, with an attribute
            ``whole``, of logits [rows length-1 10] and labels.
    """
    def make():
        model = Tagger()

        def next_token(model, ids):
            logits, labels = model(ids[:, :-1]), ids[:, 1:]
            if getattr(loss, "whole", False):
                return loss(logits, labels)
            return loss(logits.flatten(0, 1), labels.flatten())
        return Training(model, next_token, (optimizer or (
            lambda p: torch.optim.SGD(p, 0.1)))(model.parameters()),
            [torch.from_numpy(ids) for ids in given()],
            accumulate=accumulate)
    return make
