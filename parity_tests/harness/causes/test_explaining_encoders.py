"""PyTorch's encoder against ports of it: the cause is named, or none."""

import warnings

import numpy as np
import pytest

from parity.causes import catalogue
from parity.causes.explain import explain
from parity.causes.explanation import UNIDENTIFIED
from parity.comparison.compare import compare
from parity.tracing.trace import trace
from parity_tests.support.engines import usable
from parity_tests.support.explaining import (
    F, H, W, Y, drawn, filled, port, stored, told, torch_encoder)

TORCH = stored("layers", ln1="norm1", ln2="norm2", inner="linear1",
               outer="linear2") | {
    f"layers.{{i}}.attention.{name}": "layers.{i}.self_attn." + (
        "in_proj" if name != "o" else "out_proj") for name in "qkvo"}


def fault(name):
    """The faults, with what is found of each."""
    import torch
    from torch.nn import functional
    nothing = [(UNIDENTIFIED, "")]

    def pre(self, x, mask, network):
        y = self.ln1(x)
        x = x + self.attention(y, y, mask)
        return x + network(self.ln2(x))

    def bare(self, x, mask, network):
        x = self.ln1(self.attention(x, x, mask))
        return self.ln2(x + network(x))

    def halved(self, x, mask, network):
        x = self.ln1(x / 2 + self.attention(x, x, mask))
        return self.ln2(x + network(x))

    def normed_twice(self, x, mask, network):
        x = self.ln1(x + self.attention(x, x, mask))
        return self.ln2(x + network(functional.layer_norm(x, (W,))))

    def causal(scores):
        hidden = torch.ones(7, 7).triu(1).bool()
        return scores.masked_fill(hidden, -1e9).softmax(-1)
    return {
        "none": ({}, None, []),
        "eps": ({"eps": 1e-6}, "norm1", [("epsilon", "1e-06")]),
        "eps, 1e-3": ({"eps": 1e-3}, "norm1", [("epsilon", "0.001")]),
        "gelu": ({"act": functional.gelu}, "linear2",
                 [("activation", "gelu")]),
        "silu": ({"act": functional.silu}, "linear2",
                 [("activation", "silu")]),
        "no activation": ({"act": lambda x: x}, "linear2",
                          [("activation", "none")]),
        "not divided": ({"scale": 1.0}, "self_attn", [("scale", "1")]),
        "d_model": ({"scale": W**-0.5}, "self_attn",
                    [("scale", "1/√d_model")]),
        "cut": ({"split": lambda x: x.reshape(2, H, 7, -1)}, "self_attn",
                [("grouping", "cut out of time and features")]),
        "queries": ({"softmax": lambda x: x.softmax(-2)}, "self_attn",
                    [("softmax over", "queries")]),
        "causal": ({"softmax": causal}, "self_attn",
                   [("mask", "the future is hidden in b")]),
        "pre-norm": ({"layer": pre}, "norm1",
                     [("norm's place", "before the sub-layer")]),
        "no residual": ({"layer": bare}, "norm1",
                        [("residual connection", "missing")]),
        "final norm": ({"final": True}, "(model)", [("norm", "there")]),
        "dropout": ({"drop": 0.25}, "dropout2", [("dropout", "on")]),
        "half a residual": ({"layer": halved}, "norm1",
                            [("factor", "0.5")]),
        "a norm between": ({"layer": normed_twice}, "linear1", nothing),
        "another divisor": ({"scale": 0.3}, "self_attn", nothing * 2),
        "capped scores": ({"softmax": lambda x: x.tanh().softmax(-1)},
                          "self_attn", nothing * 2),
        "softmax in float32": (
            {"softmax": lambda x: x.float().softmax(-1).double()},
            "self_attn", [("precision inside", "in float32")]),
        "gelu in float32": (
            {"act": lambda x: functional.gelu(x.float()).double()},
            "linear2", nothing),
        "clipped": ({"act": lambda x: x.clamp(0, 0.5)}, "linear2", nothing),
    }[name]


FAULTS = ("none", "eps", "eps, 1e-3", "gelu", "silu", "no activation",
          "not divided", "d_model", "cut", "queries", "causal", "pre-norm",
          "no residual", "final norm", "dropout", "half a residual",
          "a norm between", "another divisor", "capped scores",
          "softmax in float32", "gelu in float32", "clipped")


@pytest.mark.long(24)
@pytest.mark.parametrize("name", FAULTS)
def test_a_port_of_torchs_encoder(name):
    """The first step is right, and no name is wrong."""
    import torch
    torch.manual_seed(0)
    wrong, step, expected = fault(name)
    theirs = torch_encoder()
    first, found = told(theirs, filled(port(**wrong), theirs, TORCH),
                        [torch.from_numpy(Y)])
    assert [(cause, what) for _, cause, what in found] == expected
    assert first == (step and (
        step if step == "(model)" else f"layers.0.{step}"))


@pytest.mark.long(24)
@pytest.mark.parametrize("name, names", [
    ("eps", {"layer norm's ε is 1e-06": "b"}),
    ("gelu", {"gelu, not relu": "b"}),
    ("no activation", {"no activation": "b"}),
    ("not divided", {"scores not divided": "b"}),
    ("cut", {"heads cut out of time and features": "b"}),
    ("queries", {"softmax over queries": "b"}),
    ("causal", {"a causal mask where none belongs": "b"}),
    ("pre-norm", {"pre-norm, not post-norm": "b"}),
    ("no residual", {"no residual connection": "b"}),
    ("final norm", {"a norm more": "b"}),
    ("dropout", {"dropout left on": "b"})])
def test_names_are_the_catalogues(name, names):
    import torch
    torch.manual_seed(0)
    theirs = torch_encoder()
    a, b = (trace(model, torch.from_numpy(Y)) for model in (
        theirs, filled(port(**fault(name)[0]), theirs, TORCH)))
    first = explain(compare(a, b), a, b)[0]
    assert first.names == names
    for cause in map(catalogue.by_name, names):
        assert f"b has “{cause.name}”: {cause.sentence}" in first.text()
    other = explain(compare(b, a), b, a)[0]  # the other way round
    assert set(other.names.values()) <= {"a", "b"}
    if name in ("gelu", "queries"):
        assert other.names == {each: "a" for each in names}
    if name == "not divided":  # which has a name of its own
        assert other.names == {"scores divided that are not": "b"}


@pytest.mark.parametrize("order, expected", [
    ((1, 2, 0), [("query, key and value", "in another order",
                  "query, key and value packed in another order")]),
    ((1, 0, 2), [("query and key", "swapped", "query and key swapped")]),
    ("feature", [("query", "in b grouped by feature",
                  "query's heads grouped by feature")])])
@pytest.mark.long(12)
def test_projections_of_one_array(order, expected):
    """In another order, or with one's heads cut otherwise."""
    usable("torch")
    import torch
    a, b = (drawn(torch.nn.MultiheadAttention(W, H, batch_first=True))
            for _ in range(2))
    with torch.no_grad():
        for name in ("in_proj_weight", "in_proj_bias"):
            parts = list(getattr(a, name).chunk(3))
            if order == "feature":
                parts[0] = parts[0].reshape(H, W // H, *parts[0].shape[1:]
                                            ).transpose(0, 1).flatten(0, 1)
            else:
                parts = [parts[i] for i in order]
            getattr(b, name).copy_(torch.cat(parts))
    x = torch.from_numpy(Y)
    a, b = (trace(model, x, x, x) for model in (a, b))
    found = explain(compare(a, b), a, b)
    told = [(each.cause, each.in_b, next(iter(each.names), ""))
            for each in found if "bias" not in each.cause]
    assert told == expected


@pytest.mark.parametrize("changes, expected", [
    ({"norm_eps": 1e-5}, []), ({}, [("epsilon", "1e-06")]),
    ({"norm_eps": 1e-5, "activation": "gelu"}, [("activation", "gelu")]),
    ({"norm_eps": 1e-5, "residual": "pre"},
     [("norm's place", "before the sub-layer")]),
    ({"norm_eps": 1e-5, "norm": "std"},
     [("epsilon's place", "outside the root"), ("variance", "over D - 1")])])
def test_our_own_port_against_torchs(changes, expected):
    """Its taps are there too; agree where the settings do."""
    import torch
    from transformer_contract.config import PRESETS
    theirs = torch_encoder()
    held = {name: array.numpy() for name, array in
            theirs.state_dict().items()}
    weights = {}
    for i in range(2):
        ours, other = f"layers.{i}", f"layers.{i}"
        kernels = dict(zip(("query", "key", "value"), zip(*(
            np.split(held[f"{other}.self_attn.in_proj_{leaf}"], 3)
            for leaf in ("weight", "bias")))))
        kernels = {f"self_attention.{name}": pair
                   for name, pair in kernels.items()} | {
            f"{name}": [held[f"{other}.{module}.{leaf}"]
                        for leaf in ("weight", "bias")]
            for name, module in (("self_attention.output",
                                  "self_attn.out_proj"),
                                 ("feed_forward.inner", "linear1"),
                                 ("feed_forward.outer", "linear2"))}
        for name, (kernel, bias) in kernels.items():
            weights[f"{ours}.{name}.kernel"] = kernel.T
            weights[f"{ours}.{name}.bias"] = bias
        for n, name in enumerate(("self_attention", "feed_forward"), start=1):
            for leaf, word in (("weight", "scale"), ("bias", "bias")):
                weights[f"{ours}.{name}_residual.norm.{word}"] = held[
                    f"{other}.norm{n}.{leaf}"]
    config = PRESETS["vaswani2017_base"].replace(
        d_model=W, n_heads=H, d_ff=F, n_encoder_layers=2, **changes)
    mine = usable("torch").build("encoder", config, weights)
    x, mask = torch.from_numpy(Y), torch.ones(2, 1, 1, 7, dtype=torch.bool)
    _, found = told(theirs, mine, [x], [x, mask])
    assert [(cause, what) for _, cause, what in found
            if cause != UNIDENTIFIED] == expected


def test_torchs_other_settings():
    import torch
    x = [torch.from_numpy(Y)]
    theirs = torch_encoder(final=True)
    _, found = told(theirs, filled(port(eps=1e-6), theirs, TORCH), x)
    assert found == [("layers.0.norm1", "epsilon", "1e-06"),
                     ("(model)", "norm", "missing")]
    theirs = torch_encoder(norm_first=True)
    _, found = told(theirs, filled(port(), theirs, TORCH), x)
    assert found[0] == ("layers.0.norm1", "norm's place", "after the sum")


def test_torchs_transformer_always_ends_in_norms():
    """nn.Transformer adds two final norms; hand-made stacks need none."""
    usable("torch")
    import torch
    from torch import nn

    def transformer(**more):
        return nn.Transformer(W, H, 1, 1, F, 0.0, batch_first=True, **more)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an odd number of heads
        right = drawn(transformer())

    def without():
        encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(
            W, H, F, 0.0, batch_first=True), 1, enable_nested_tensor=False)
        made = transformer(custom_encoder=encoder).double().eval()
        made.load_state_dict({
            name: array for name, array in right.state_dict().items()
            if not name.startswith("encoder.norm")})
        return made
    x = torch.from_numpy(Y)
    first, found = told(right, without(), [x, x[:, :5] + 1])
    assert (first, found[0][1:]) == ("encoder", ("norm", "missing"))
    assert len(found) == 1
    wrong = without()
    wrong.decoder.layers[0].norm2.eps = 1e-6
    _, found = told(without(), wrong, [x, x[:, :5] + 1])
    assert found == [("decoder.layers.0.norm2", "epsilon", "1e-06")]
