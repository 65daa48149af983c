"""A cause is named where it is proved, and never a wrong one."""

import json
import subprocess
import sys
import warnings

import numpy as np
import pytest

import parity
from parity.causes import catalogue
from parity.causes.explain import UNIDENTIFIED, explain
from parity.comparison.compare import compare
from parity.render.comparison import as_html
from parity.tracing.folder import dump, load
from parity.tracing.trace import trace
from parity_tests.support.engines import usable
from parity_tests.support.explanations import known

D = 6
RNG = np.random.default_rng(5)
X = RNG.normal(size=(2, 7, D))


def explained(a, b, port, x=X):
    """[(step of a, cause, what it is in b)] of two models, a being right."""
    give = usable(port).to_native
    a, b = (trace(model, give(x, "cpu")) for model in (a, b))
    found = compare(a, b)
    return [(each.a, each.cause, each.in_b)
            for each in known(explain(found, a, b))]


# Norms, linear layers, activations

def chain(norm=None, act=None, seed=0, change=None):
    """Linear, norm, activation, Linear; in torch, nothing zero or one."""
    usable("torch")
    import torch
    from torch import nn
    model = nn.Sequential(
        nn.Linear(D, D), norm or nn.LayerNorm(D), act or nn.ReLU(),
        nn.Linear(D, 5)).double().eval()
    draw = np.random.default_rng(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.from_numpy(draw.normal(
                size=tuple(parameter.shape))))
        if change:
            change(model)
    return model


def own_norm(compute):
    """A torch norm that computes in its own way."""
    usable("torch")
    from torch import nn

    class OwnNorm(nn.LayerNorm):
        def forward(self, x):
            return compute(self, x - x.mean(-1, keepdim=True), x)
    return OwnNorm(D)


NORMS = {
    "unbiased": (lambda n, c, x: c / (x.var(-1, keepdim=True) + n.eps).sqrt()
                 * n.weight + n.bias, [("variance", "over D - 1")]),
    "outside": (lambda n, c, x: c / (
        x.std(-1, keepdim=True, unbiased=False) + n.eps) * n.weight + n.bias,
        [("epsilon's place", "outside the root")]),
    "annotated": (lambda n, c, x: c / (x.std(-1, keepdim=True) + n.eps)
                  * n.weight + n.bias,
                  [("epsilon's place", "outside the root"),
                   ("variance", "over D - 1")]),
    "rms": (lambda n, c, x: x / ((x * x).mean(-1, keepdim=True) + n.eps).sqrt()
            * n.weight + n.bias, [("mean", "ignored")]),
    "one is added": (lambda n, c, x: c / (
        x.var(-1, keepdim=True, unbiased=False) + n.eps).sqrt()
        * (1 + n.weight) + n.bias, [("scale", "1 is added")]),
    "no bias": (lambda n, c, x: c / (
        x.var(-1, keepdim=True, unbiased=False) + n.eps).sqrt() * n.weight,
        [("bias", "ignored")]),
    "unknown": (lambda n, c, x: 1.01 * c / (
        x.var(-1, keepdim=True, unbiased=False) + n.eps).sqrt() * n.weight
        + n.bias, [(UNIDENTIFIED, "")]),
}


@pytest.mark.parametrize("name", NORMS)
def test_norms(name):
    compute, expected = NORMS[name]
    found = explained(chain(), chain(own_norm(compute)), "torch")
    assert found == [("1", *cause) for cause in expected]


@pytest.mark.parametrize("eps", [1e-6, 1e-12, 3e-4])
def test_epsilons(eps):
    from torch import nn
    found = explained(chain(), chain(nn.LayerNorm(D, eps=eps)), "torch")
    assert found == [("1", "epsilon", f"{eps:g}")]


def test_two_faults_are_both_named():
    from torch import nn
    found = explained(chain(act=nn.GELU()), chain(
        nn.LayerNorm(D, eps=1e-6), nn.GELU(approximate="tanh")), "torch")
    assert found == [("1", "epsilon", "1e-06"),
                     ("2", "activation", "gelu by tanh")]


def square(model):
    model[0].weight.copy_(model[0].weight.T.clone())


def single(model):
    model[0].weight.copy_(model[0].weight.float().double())


def zero(model):
    model[3].bias.zero_()


def missing(model):
    model[0].bias = None


@pytest.mark.parametrize("change, expected", [
    (square, ("0", "kernel", "transposed")),
    (single, ("0", "kernel", "rounded to float32 in b")),
    (zero, ("3", "bias", "zero in b")),
    (missing, ("0", "bias", "missing in b"))])
def test_linear_layers(change, expected):
    assert explained(chain(), chain(change=change), "torch") == [expected]


# A layer of PyTorch's, and a port with its own names

W, H, F, V = 12, 3, 20, 17
Y = np.random.default_rng(1).normal(size=(2, 7, W))


def drawn(model, skip="nothing"):
    """A torch model in float64 whose every number is drawn."""
    import torch
    model, draw = model.double().eval(), np.random.default_rng(0)
    with torch.no_grad():
        for name, array in model.named_parameters():
            if skip not in name:
                array.copy_(torch.from_numpy(draw.normal(
                    size=tuple(array.shape), scale=0.5)))
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


TORCH = stored("layers", ln1="norm1", ln2="norm2", inner="linear1",
               outer="linear2") | {
    f"layers.{{i}}.attention.{name}": "layers.{i}.self_attn." + (
        "in_proj" if name != "o" else "out_proj") for name in "qkvo"}


def told(a, b, given_a, given_b=None):
    """(step of a where they part first, [(step of a, cause, what in b)])."""
    a, b = trace(a, *given_a), trace(b, *(given_b or given_a))
    found = compare(a, b)
    return found.first and found.first.a, [
        (each.a, each.cause, each.in_b)
        for each in known(explain(found, a, b))]


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
        "half a residual": ({"layer": halved}, "norm1", nothing),
        "a norm between": ({"layer": normed_twice}, "linear1", nothing),
        "another divisor": ({"scale": 0.3}, "self_attn", nothing * 2),
        "capped scores": ({"softmax": lambda x: x.tanh().softmax(-1)},
                          "self_attn", nothing * 2),
        "softmax in float32": (
            {"softmax": lambda x: x.float().softmax(-1).double()},
            "self_attn", nothing * 2),
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
    if name in ("gelu", "not divided", "queries"):
        assert other.names == {each: "a" for each in names}


@pytest.mark.parametrize("order, expected", [
    ((1, 2, 0), [("query, key and value", "in another order",
                  "query, key and value packed in another order")]),
    ((1, 0, 2), [("query and key", "swapped", "query and key swapped")]),
    ("feature", [("query", "in b grouped by feature",
                  "query's heads grouped by feature")])])
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
    from contract.config import PRESETS
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


# Hugging Face

def hugging_face(name):
    pytest.importorskip(
        "transformers", reason="not checked: transformers is not installed")
    usable("torch")
    import transformers
    if name == "bert":
        return drawn(transformers.BertModel(transformers.BertConfig(
            vocab_size=V, hidden_size=W, num_hidden_layers=2,
            num_attention_heads=H, intermediate_size=F,
            max_position_embeddings=16, attn_implementation="eager"),
            add_pooling_layer=False))
    model = transformers.MarianModel(transformers.MarianConfig(
        vocab_size=V, d_model=W, encoder_layers=2, decoder_layers=1,
        encoder_attention_heads=H, decoder_attention_heads=H,
        encoder_ffn_dim=F, decoder_ffn_dim=F, max_position_embeddings=16,
        scale_embedding=True, activation_function="swish", pad_token_id=0,
        decoder_start_token_id=0, attn_implementation="eager"))
    model = drawn(model, "embed_positions").encoder
    import torch
    with torch.no_grad():
        model.embed_positions.weight.copy_(
            model.embed_positions.create_weight())
    return model


BERT = stored("encoder.layer", ln1="attention.output.LayerNorm",
              ln2="output.LayerNorm", inner="intermediate.dense",
              outer="output.dense", **{
                  f"attention.{mine}": f"attention.{other}"
                  for mine, other in (("q", "self.query"), ("k", "self.key"),
                                      ("v", "self.value"),
                                      ("o", "output.dense"))}) | {
    "tok": "embeddings.word_embeddings", "n": "embeddings.LayerNorm",
    "pos": "embeddings.position_embeddings",
    "seg": "embeddings.token_type_embeddings"}

MARIAN = stored("layers", ln1="self_attn_layer_norm",
                ln2="final_layer_norm", inner="fc1", outer="fc2", **{
                    f"attention.{mine}": f"self_attn.{other}_proj"
                    for mine, other in (("q", "q"), ("k", "k"), ("v", "v"),
                                        ("o", "out"))}) | {
    "tok": "embed_tokens"}


def tokens():
    import torch
    ids = np.random.default_rng(3).integers(1, V, (2, 7))
    mask = torch.ones(2, 7, dtype=torch.bool)
    mask[0, 5:] = False
    ids = torch.from_numpy(ids)
    return [ids, mask.long()], [ids, mask]


@pytest.mark.parametrize("wrong, expected", [
    ({}, []), ({"eps": 1e-5}, [("epsilon", "1e-05")]),
    ({"eps0": 1e-5}, [("epsilon", "1e-05")]),
    ({"tanh": True}, [("activation", "gelu by tanh")]),
    ({"words": False}, [("summand", "missing")]),
    ({"factor": W**0.5}, [("factor", "3.4641")]),
    ({"first": 2}, [("first position", "2")]),
    ({"mask": None}, [("mask", "ignored in b")]),
    ({"mask": lambda mask: ~mask[:, None, None]},
     [("mask", "turned round in b")]),
    ({"scale": W**-0.5}, [("scale", "1/√d_model")]),
    ({"tanh": True, "eps0": 1e-6}, [("epsilon", "1e-06"),
                                    ("activation", "gelu by tanh")])])
def test_bert(wrong, expected):
    """With token types, which ports forget, and the exact gelu."""
    theirs = hugging_face("bert")
    from torch.nn import functional
    wrong = {"words": True, "eps": 1e-12, **wrong}
    how = "tanh" if wrong.pop("tanh", False) else "none"
    mine = filled(port(act=lambda x: functional.gelu(x, approximate=how),
                       **wrong), theirs, BERT)
    _, found = told(theirs, mine, *tokens())
    assert [(cause, what) for _, cause, what in found] == expected


def table(first=0, halves=True, t2t=False):
    """Marian's positions, which passed through float32."""
    pair = np.arange(W // 2)
    step = pair / (W // 2 - 1) if t2t else 2 * pair / W
    angle = (np.arange(7) + first)[:, None] / 10000.0**step
    both = np.sin(angle), np.cos(angle)
    rows = (np.concatenate(both, -1) if halves
            else np.stack(both, -1).reshape(7, W))
    return rows.astype(np.float32).astype(np.float64)


@pytest.mark.parametrize("wrong, expected", [
    ({}, []),
    ({"table": {"halves": False}}, [("positions' layout", "interleaved")]),
    ({"table": {"t2t": True}}, [("positions' exponent", "i/(d/2 - 1)")]),
    ({"table": {"first": 1}}, [("first position", "1")]),
    ({"factor": 1.0}, [("input's factor", "1.0")]),
    ({"eps": 1e-6}, [("epsilon", "1e-06")]),
    ({"table": {"halves": False}, "eps": 1e-6},
     [("positions' layout", "interleaved"), ("epsilon", "1e-06")])])
def test_marian(wrong, expected):
    """Its sinusoids stand in halves, and its embedding is scaled."""
    theirs = hugging_face("marian")
    from torch.nn import functional
    wrong = {"factor": W**0.5, "act": functional.silu, **wrong}
    wrong["table"] = table(**wrong.pop("table", {}))
    _, found = told(theirs, filled(port(**wrong), theirs, MARIAN), *tokens())
    assert [(cause, what) for _, cause, what in found] == expected


# Keras Hub and NNX

@pytest.mark.parametrize("wrong, expected", [
    ({}, []), ({"layer_norm_epsilon": 1e-6}, [("epsilon", "1e-06")]),
    ({"activation": "silu"}, [("activation", "silu")]),
    ({"normalize_first": True}, [("norm's place", "before the sub-layer")])])
def test_keras_hub(wrong, expected):
    hub = pytest.importorskip(
        "keras_hub", reason="not checked: keras_hub is not installed")
    give = usable("keras").to_native
    from parity_tests.support import layers as others
    layer = others.torch_layer()
    arrays = others.weights_of(layer)
    size, heads = others.D, others.H
    b = hub.layers.TransformerEncoder(others.F, heads, dtype="float64",
                                      **{"layer_norm_epsilon": 1e-5, **wrong})
    b(give(others.X, "cpu"))
    inner = b._self_attention_layer
    inner._inverse_sqrt_key_dim = np.float64((size // heads)**-0.5)
    for name, kernel, bias in zip(("query", "key", "value"), *(
            np.split(arrays[f"self_attn.in_proj_{leaf}"], 3)
            for leaf in ("weight", "bias"))):
        dense = getattr(inner, f"_{name}_dense")
        dense.kernel.assign(kernel.T.reshape(size, heads, -1))
        dense.bias.assign(bias.reshape(heads, -1))
    inner._output_dense.kernel.assign(
        arrays["self_attn.out_proj.weight"].T.reshape(heads, -1, size))
    inner._output_dense.bias.assign(arrays["self_attn.out_proj.bias"])
    for name, other in (("self_attention_layer_norm", "norm1"),
                        ("feedforward_layer_norm", "norm2"),
                        ("feedforward_intermediate_dense", "linear1"),
                        ("feedforward_output_dense", "linear2")):
        held, array = getattr(b, f"_{name}"), arrays[f"{other}.weight"]
        (held.gamma if "norm" in other else held.kernel).assign(array.T)
        (held.beta if "norm" in other else held.bias).assign(
            arrays[f"{other}.bias"])
    a, b = others.traced(layer, "torch"), others.traced(b, "keras")
    found = explain(compare(a, b), a, b)
    assert [(each.cause, each.in_b) for each in found] == expected


def test_nnx_attention():
    """Its own computes the softmax in float32, which no replay repeats."""
    usable("torch"), usable("jax")
    import jax
    import jax.numpy as jnp
    import torch
    from flax import nnx

    class Torch(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.mha = torch.nn.MultiheadAttention(W, H, batch_first=True)

        def forward(self, x):
            return self.mha(x, x, x)[0]

    class Jax(nnx.Module):
        def __init__(self, attention):
            self.mha = nnx.MultiHeadAttention(
                H, W, decode=False, param_dtype=jnp.float64,
                rngs=nnx.Rngs(0), attention_fn=attention)

        def __call__(self, x):
            return self.mha(x)
    theirs = drawn(Torch())
    held = {name: value.numpy() for name, value in
            theirs.state_dict().items()}

    def made(attention):
        model = Jax(attention)
        for name, kernel, bias in zip(("query", "key", "value"), *(
                np.split(held[f"mha.in_proj_{leaf}"], 3)
                for leaf in ("weight", "bias"))):
            dense = getattr(model.mha, name)
            dense.kernel.set_value(jnp.array(kernel.T.reshape(W, H, -1)))
            dense.bias.set_value(jnp.array(bias.reshape(H, -1)))
        model.mha.out.kernel.set_value(jnp.array(
            held["mha.out_proj.weight"].T.reshape(H, -1, W)))
        model.mha.out.bias.set_value(jnp.array(held["mha.out_proj.bias"]))
        return model

    def attention(scale):
        def attend(q, k, v, **_):
            scores = jnp.einsum("bthd,bshd->bhts", q, k) * scale
            return jnp.einsum("bhts,bshd->bthd", jax.nn.softmax(scores), v)
        return attend
    given = [torch.from_numpy(Y)], [jnp.array(Y)]
    assert told(theirs, made(attention((W // H)**-0.5)), *given) == (None, [])
    assert told(theirs, made(attention(1.0)), *given)[1] == [
        ("mha", "scale", "1")]
    a, b = trace(theirs, *given[0]), trace(
        made(nnx.dot_product_attention), *given[1])
    only, = explain(compare(a, b), a, b)
    assert only.cause == UNIDENTIFIED and not only.errors
    assert "of the size of float32's rounding" in only.text()


# Reports

def test_reports_and_files(tmp_path):
    from torch import nn
    import torch
    x = torch.from_numpy(X)
    a, b = trace(chain(), x), trace(chain(nn.LayerNorm(D, eps=1e-3)), x)
    found = parity.compare(a, b)
    assert found.as_json()["explanations"] == []
    first, = parity.explain(found, a, b)
    assert first.errors["a"] < 1e-14 < 1e-3 < first.errors["without"]
    assert first.inputs == {"a": 4, "b": 4}
    data = found.as_json()
    assert json.loads(json.dumps(data, allow_nan=False)) == data
    assert data["explanations"][0]["cause"] == "epsilon"
    assert "In 1, epsilon: 0.001 in b, 1e-05 in a." in as_html(found)
    for name, each in (("a", a), ("b", b)):
        dump(each, tmp_path / name)
    a, b = load(tmp_path / "a"), load(tmp_path / "b")
    again, = explain(compare(a, b), a, b)
    assert (again.cause, again.inputs) == ("epsilon", {"a": 1, "b": 1})


def test_the_package_needs_no_framework():
    code = ("import sys, parity; parity.trace, parity.compare, parity.explain;"
            "print({'torch', 'jax', 'keras', 'tensorflow', 'flax'} "
            "& set(sys.modules))")
    done = subprocess.run([sys.executable, "-c", code], text=True,
                          capture_output=True, check=True)
    assert done.stdout == "set()\n"
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = parity.nothing
