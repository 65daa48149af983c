"""Layers as Llama and T5 have them: what differs in a gate or an RMS norm."""

import numpy as np
import pytest

from parity_tests.support.engines import usable
from parity_tests.support.explaining import D, F, drawn, explained


def layers(act="silu", eps=1e-6, plus=False, exchanged=None, added=False):
    """Two layers, x + down(act(gate(norm(x))) · up(norm(x))), and a norm.

    ``exchanged`` are gate and up in "values" or in "weights"; they may be
    ``added``.
    """
    usable("torch")
    import torch
    from torch import nn
    from torch.nn import functional
    function = {
        "silu": functional.silu, "gelu": functional.gelu,
        "gelu_new": lambda x: functional.gelu(x, approximate="tanh")}[act]

    class RMSNorm(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(D))
            self.variance_epsilon = eps

        def forward(self, x):
            square = x.pow(2).mean(-1, keepdim=True)
            return x * torch.rsqrt(square + eps) * (self.weight + plus)

    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            self.gate_proj = nn.Linear(D, F, bias=False)
            self.up_proj = nn.Linear(D, F, bias=False)
            self.down_proj = nn.Linear(F, D, bias=False)

        def forward(self, x):
            gate, up = self.gate_proj(x), self.up_proj(x)
            if exchanged == "values":
                gate, up = up, gate
            gate = function(gate)
            return self.down_proj(gate + up if added else gate * up)

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm, self.mlp = RMSNorm(), Network()

        def forward(self, x):
            return x + self.mlp(self.norm(x))

    model = drawn(nn.Sequential(Layer(), Layer(), RMSNorm()))
    if exchanged == "weights":
        with torch.no_grad():
            for layer in model[:2]:
                gate, up = layer.mlp.gate_proj, layer.mlp.up_proj
                gate.weight, up.weight = up.weight, gate.weight
    return model


@pytest.mark.parametrize("a, b, expected", [
    ({}, {"eps": 1e-5}, ("0.norm", "epsilon", "1e-05")),
    ({"eps": 1e-5}, {"eps": 1e-6}, ("0.norm", "epsilon", "1e-06")),
    ({}, {"plus": True}, ("0.norm", "scale", "1 is added")),
    ({}, {"exchanged": "values"}, ("0.mlp.down_proj", "gate", "exchanged")),
    ({}, {"exchanged": "weights"}, ("0.mlp.down_proj", "gate", "exchanged")),
    ({}, {"added": True}, ("0.mlp.down_proj", "gate", "added")),
    ({"added": True}, {}, ("0.mlp.down_proj", "gate", "multiplied")),
    ({"act": "gelu"}, {"act": "gelu_new"},
     ("0.mlp.down_proj", "activation", "gelu by tanh")),
    ({"act": "gelu_new"}, {"act": "gelu"},
     ("0.mlp.down_proj", "activation", "gelu")),
    ({"act": "gelu"}, {"act": "silu"},
     ("0.mlp.down_proj", "activation", "silu")),
    ({}, {"act": "gelu"}, ("0.mlp.down_proj", "activation", "gelu"))])
def test_gated_layers(a, b, expected):
    x = np.random.default_rng(7).normal(size=(2, 7, D))
    assert explained(layers(**a), layers(**b), "torch", x) == [expected]
