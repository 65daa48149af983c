"""Models whose causes are asked: as the library has them, and a port."""

import numpy as np

from parity.causes import catalogue
from parity.causes.diff import diff
from parity.causes.explain import explain
from parity.comparison.compare import compare
from parity.tracing.trace import trace
from parity_tests.support.engines import usable

D = 6
RNG = np.random.default_rng(5)
X = RNG.normal(size=(2, 7, D))

W, H, F, V = 12, 3, 20, 17
Y = np.random.default_rng(1).normal(size=(2, 7, W))


def of_traces(a, b):
    """The Comparison of two traces, explained."""
    comparison = compare(a, b)
    explain(comparison, a, b)
    return comparison


def compared(a, b, *given, **named):
    """The Comparison of two models of one framework, explained."""
    return of_traces(*(trace(each, *given, **named) for each in (a, b)))


def by_operations(a, b, *given):
    """(cause, in a, in b) of each, where the outputs then agree."""
    found = diff(a, b, *given)
    assert found.corrected, found
    return [(each.cause, each.in_a, each.in_b) for each in found.explanations]


def known(explanations):
    """Explanations, each of which the catalogue has a name for."""
    for each in explanations:
        assert bool(each.names) == each.identified, each.text()
        for name in each.names:
            assert catalogue.by_name(name).explained
    return explanations


def explained(a, b, port, x=X):
    """[(step of a, cause, what it is in b)] of two models, a being right."""
    give = usable(port).to_native
    found = of_traces(*(trace(model, give(x, "cpu")) for model in (a, b)))
    return [(each.a, each.cause, each.in_b)
            for each in known(found.explanations)]


def drawn(model, skip="nothing", seed=0, scale=0.5):
    """A torch model in float64 whose every number is drawn."""
    import torch
    model, draw = model.double().eval(), np.random.default_rng(seed)
    with torch.no_grad():
        for name, array in model.named_parameters():
            if skip not in name:
                array.copy_(torch.from_numpy(draw.normal(
                    size=tuple(array.shape), scale=scale)))
    return model


def torch_encoder(final=False, **settings):
    """PyTorch's own."""
    usable("torch")
    from torch import nn
    layer = nn.TransformerEncoderLayer(W, H, F, 0.0, batch_first=True,
                                       **settings)
    return drawn(nn.TransformerEncoder(
        layer, 2, nn.LayerNorm(W) if final else None,
        enable_nested_tensor=False))


def port(**wrong):
    """An encoder as somebody may have written it, with something wrong.

    It can have BERT's and Marian's embeddings too.
    """
    usable("torch")
    import torch
    from torch import nn
    right = {"eps": 1e-5, "act": torch.relu, "scale": (W // H)**-0.5,
             "mask": lambda mask: mask[:, None, None], "split": None,
             "factor": 1.0, "first": 0, "drop": 0.0, "eps0": 1e-12}
    s = right | wrong

    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.heads = H
            self.q, self.k, self.v, self.o = (
                nn.Linear(W, W) for _ in range(4))

        def forward(self, x, memory, mask):
            def heads(x):
                if s["split"]:
                    return s["split"](x)
                return x.view(*x.shape[:2], H, -1).transpose(1, 2)
            q, k, v = (heads(f(y)) for f, y in (
                (self.q, x), (self.k, memory), (self.v, memory)))
            scores = q @ k.transpose(-1, -2) * s["scale"]
            if mask is not None and s["mask"]:
                scores = scores.masked_fill(~s["mask"](mask), -1e9)
            mixed = s.get("softmax", lambda x: x.softmax(-1))(scores) @ v
            return self.o(mixed.transpose(1, 2).reshape(x.shape))

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.attention = Attention()
            self.ln1, self.ln2 = (nn.LayerNorm(W, s["eps"])
                                  for _ in range(2))
            self.inner, self.outer = nn.Linear(W, F), nn.Linear(F, W)
            self.drop = nn.Dropout(s["drop"])

        def forward(self, x, mask):
            def network(x):
                return self.drop(self.outer(s["act"](self.inner(x))))
            if "layer" in s:
                return s["layer"](self, x, mask, network)
            x = self.ln1(x + self.attention(x, x, mask))
            return self.ln2(x + network(x))

    class Port(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList([Layer(), Layer()])
            if s.get("final"):
                self.norm = nn.LayerNorm(W)
            if "table" in s or "words" in s:
                self.tok = nn.Embedding(V, W)
            if "words" in s:
                self.pos, self.seg = nn.Embedding(16, W), nn.Embedding(2, W)
                self.n = nn.LayerNorm(W, s["eps0"])

        def forward(self, x, mask=None):
            if "table" in s:
                x = self.tok(x) * s["factor"] + torch.from_numpy(s["table"])
            if "words" in s:
                places = torch.arange(x.shape[1]) + s["first"]
                more = [self.seg(0 * x)] if s["words"] else []
                x = self.n(sum([self.tok(x) * s["factor"],
                                self.pos(places), *more]))
            for layer in self.layers:
                x = layer(x, mask)
            return self.norm(x) if s.get("final") else x
    return Port().double().train(bool(s["drop"]))


def filled(model, theirs, names):
    """A port with another model's arrays: {ours: theirs}, {i} in both."""
    held, mine = theirs.state_dict(), model.state_dict()
    for name in mine:
        owner, leaf = name.rsplit(".", 1)
        number = next((p for p in owner.split(".") if p.isdigit()), "")
        owner = ".".join("{i}" if p == number else p
                         for p in owner.split("."))
        if owner in names:
            mine[name] = held[names[owner].replace("{i}", number)
                              + ("_" if "in_proj" in names[owner] else ".")
                              + leaf]
            part = "qkv".find(owner[-1])
            if "in_proj" in names[owner]:
                mine[name] = mine[name].chunk(3)[part]
    model.load_state_dict(mine)
    return model


def stored(theirs, **names):
    return {f"layers.{{i}}.{mine}": f"{theirs}.{{i}}.{other}"
            for mine, other in names.items()}


def told(a, b, given_a, given_b=None):
    """(step of a where they part first, [(step of a, cause, what in b)])."""
    found = of_traces(
        trace(a, *given_a), trace(b, *(given_b or given_a)))
    return found.first and found.first.a, [
        (each.a, each.cause, each.in_b)
        for each in known(found.explanations)]
