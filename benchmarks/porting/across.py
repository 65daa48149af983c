"""Faults of ports: Hugging Face's and PyTorch's models in each framework."""

import functools

import numpy as np

from benchmarks.porting.hugging_face import F, G, H, T, W, inputs, made
from benchmarks.porting.kits import KITS, kit
from benchmarks.porting.planted import Planted
from benchmarks.porting.ports import encoder, llama
from benchmarks.porting.ways import (
    REORDERED, SCALED, SCALES, TRANSPOSED, activation, interleaved_heads,
    transposed)

#: Encoder's parts in BERT and in PyTorch's own.
BERT = {"q": "attention.self.query", "k": "attention.self.key",
        "v": "attention.self.value", "o": "attention.output.dense",
        "norm1": "attention.output.LayerNorm", "inner": "intermediate.dense",
        "outer": "output.dense", "norm2": "output.LayerNorm"}
NN = {"o": "self_attn.out_proj", "norm1": "norm1", "norm2": "norm2",
      "inner": "linear1", "outer": "linear2"}


def numbers(model):
    """Every array of a torch model, by name."""
    return {name: array.numpy() for name, array in model.state_dict().items()}


def layers(arrays, names, prefix):
    """{"0.q": (weight, bias), …} of two layers."""
    return {f"{i}.{mine}": tuple(
        arrays[f"{prefix}.{i}.{name}.{leaf}"] for leaf in ("weight", "bias"))
        for i in range(2) for mine, name in names.items()}


def of_bert(seed=0):
    """BERT's encoder, its inputs and its arrays by an encoder's names."""
    model = made("bert", seed).bert
    arrays = numbers(model)
    given = inputs("bert", seed)
    named = layers(arrays, BERT, "encoder.layer") | {
        "norm0": tuple(arrays[f"embeddings.LayerNorm.{leaf}"]
                       for leaf in ("weight", "bias"))} | {
        mine: arrays[f"embeddings.{name}_embeddings.weight"]
        for mine, name in (("tok", "word"), ("pos", "position"),
                           ("seg", "token_type"))}
    ids, mask = given["input_ids"], given["attention_mask"]
    return model, (ids, mask), (ids.numpy(), mask.numpy() > 0), named


def of_nn(seed=0):
    """PyTorch's own encoder, likewise."""
    import torch
    from torch import nn
    torch.manual_seed(0)
    model = nn.TransformerEncoder(nn.TransformerEncoderLayer(
        W, H, F, 0.0, batch_first=True), 2, enable_nested_tensor=False)
    model = model.double().eval()
    draw = np.random.default_rng(2 + seed)
    with torch.no_grad():
        for array in model.parameters():
            array.copy_(torch.from_numpy(draw.normal(
                array.ndim < 2, 0.3, array.shape)))
    arrays = numbers(model)
    named = layers(arrays, NN, "layers")
    for i in range(2):
        packed = [np.split(arrays[f"layers.{i}.self_attn.in_proj_{leaf}"], 3)
                  for leaf in ("weight", "bias")]
        named |= {f"{i}.{part}": both
                  for part, both in zip("qkv", zip(*packed))}
    x = draw.normal(size=(2, T, W))
    return model, (torch.from_numpy(x),), (x,), named


def of_llama(seed=0):
    """Llama, likewise."""
    model = made("llama", seed)
    ids = inputs("llama", seed)["input_ids"]
    return model, (ids,), (ids.numpy(),), numbers(model)


def encoder_of(name, arrays, wrong):
    """A port of an encoder."""
    return encoder(kit(name), arrays, 2, wrong)


def llama_of(name, arrays, wrong):
    """A port of a Llama."""
    return llama(kit(name), arrays, 2, wrong)


def ported(of, port, name, wrong, change, planted, seed=0):
    """An original and its port, each with its inputs.

    Args:
        of: gives the original.
        port: makes a port of (framework, arrays, wrong).
        name: the framework.
        wrong: fields that it has otherwise.
        change: what is done to its arrays.
        planted: the Planted, of which nothing is asked.
        seed: of what is drawn.
    """
    model, given, theirs, arrays = of(seed)
    arrays = {path: [*each] if isinstance(each, tuple) else each
              for path, each in arrays.items()}
    if change:
        change(arrays)
    keywords = {"use_cache": False} if of is of_llama else {}
    return (model, given, keywords), (
        port(name, arrays, wrong),
        tuple(kit(name).array(each) for each in theirs), {})


def each_kernel(ends, function, leaf=0):
    """A change of the arrays whose names end so: of encoders the weight, or
    leaf 1, the bias."""
    def change(arrays):
        for path, held in arrays.items():
            if path.endswith(ends):
                if isinstance(held, list):
                    held[leaf] = function(held[leaf])
                else:
                    arrays[path] = function(held)
    return change


def swapped(one, two):
    """Arrays whose names end so, each in the other's place."""
    def change(arrays):
        for path in [path for path in arrays if path.endswith(one)]:
            other = path.removesuffix(one) + two
            arrays[path], arrays[other] = arrays[other], arrays[path]
    return change


def of_encoders(act, eps, fused=False):
    """Yield (name, causes, wrong, change of the arrays, where) of both.

    Args:
        act, eps: what is right, as it is told.
        fused: whether attention is one module, of which a kernel is told by
            its part.
    """
    def of(part, kernel, leaf=""):
        return [(f"{part}{leaf}" if fused else leaf.strip() or "kernel", "",
                 kernel)]
    yield "equal", [], {}, None, ""
    for word in ("1e-06", "1e-05", "0.001"):
        if word != eps:
            yield (f"ε {word}", [("epsilon", eps, word)],
                   {"eps": float(word)}, None, "")
    for word in ("gelu", "gelu by tanh", "relu", "silu"):
        if word != act:
            causes = activation(act, word)
            if act == "relu":
                causes = [("activation", "relu or relu6", word), *causes]
            yield word, causes, {"act": word}, None, ""
    for word, scale in SCALES:
        yield (f"scale {word}", [("scale", "1/√d_k", word)],
               {"scale": scale}, None, "att")
    yield ("cut out of time", [
        ("grouping", "head by head", "cut out of time and features")],
        {"grouping": "cut"}, None, "att")
    yield ("softmax over queries", [("softmax over", "keys", "queries")],
           {"over": -2}, None, "att")
    yield ("norms before", [
        ("norm's place", "after the sum", "before the sub-layer")],
        {"pre": True}, None, "")
    yield ("no residual", [("residual connection", "there", "missing")],
           {"residual": False}, None, "")
    for part, word in (("q", "query"), ("k", "key"), ("v", "value"),
                       ("o", "output")):
        yield (f"{word} transposed", of(word, "transposed"), {},
               each_kernel(f".{part}", transposed), "att")
    yield ("query's heads by feature", of(
        "query", "in b grouped by feature" if fused else
        "in b the same numbers in another order"), {},
        each_kernel(".q", interleaved_heads), "att")
    yield ("query and key exchanged", [
        ("query and key", "as they are", "swapped")], {},
        swapped(".q", ".k"), "att")
    for part, word in (("q", "query"), ("v", "value")):
        yield (f"{word}'s bias missing", of(word, "zero in b", " bias"), {},
               each_kernel(f".{part}", np.zeros_like, 1), "att")


def of_berts():
    """What BERT's port may have wrong besides."""
    yield ("token types missing", [("summand", "there", "missing")],
           {"words": False}, None, "emb|norm0|Norm")
    yield ("embedding times √d", SCALED, {"factor": W**0.5}, None,
           "emb|tok")
    yield ("positions from 1", [("first position", "0", "1")],
           {"first": 1}, None, "")
    yield ("ε of the embeddings", [("epsilon", "1e-12", "1e-06")],
           {"eps0": 1e-6}, None, "emb")
    yield "no mask", [("mask", "", "ignored in b")], {"mask": None}, None, ""
    yield ("mask turned round", [("mask", "", "turned round in b")],
           {"mask": lambda mask: mask == False}, None, "")  # noqa: E712


def of_llamas():
    """What Llama's port may have wrong."""
    yield "equal", [], {}, None, ""
    for word in ("1e-05", "1e-08"):
        yield (f"ε {word}", [("epsilon", "1e-06", word)],
               {"eps": float(word)}, None, "")
    yield ("ε outside", [
        ("epsilon's place", "inside the root", "outside the root")],
        {"outside": True}, None, "")
    yield "1 + w", [("scale", "used", "1 is added")], {"plus": 1.0}, None, (
        "norm")
    yield "LayerNorm", [("mean", "ignored", "subtracted")], {
        "mean": True}, None, ""
    for theta in (500000, 1000):
        yield (f"θ {theta}", [("rotary base", "10000", str(theta))],
               {"theta": float(theta)}, None, "")
    yield ("interleaved", [("rotary pairs", "in halves", "interleaved")],
           {"pairs": "interleaved"}, None, "")
    yield ("turned backwards", [("rotary direction", "forwards",
                                 "backwards")], {"sign": -1}, None, "")
    for on, word in (("k", "keys"), ("q", "queries"), ("", "neither")):
        yield (f"turned: {word}", [
            ("rotary on", "queries and keys", word)], {"on": on}, None, "")
    yield ("groups in turn", [("shared heads", "in order", "in turn")],
           {"order": [h % G for h in range(H)]}, None, "")
    yield ("groups in reverse", [("shared heads", "in order", "in reverse")],
           {"order": [(H - 1 - h) * G // H for h in range(H)]}, None, "")
    for word, scale in SCALES:
        yield (f"scale {word}", [("scale", "1/√d_k", word)],
               {"scale": scale}, None, "att")
    for word in ("gelu", "relu"):
        yield word, activation("silu", word), {"act": word}, None, ""
    yield ("gate and up exchanged", [("gate", "as it is", "exchanged")], {},
           swapped("gate_proj.weight", "up_proj.weight"), "")
    yield ("the next is seen", [
        ("mask", "", "off by one, the next place is seen in b")],
        {"seen": lambda t, s: s <= t + 1}, None, "")
    yield ("no mask", [("mask", "", "the future is seen in b"),
                       ("mask", "", "ignored in b")],
           {"seen": lambda t, s: t + s >= 0}, None, "")
    yield ("query transposed", TRANSPOSED, {},
           each_kernel("q_proj.weight", transposed), "att")
    yield ("query's heads by feature", REORDERED, {},
           each_kernel("q_proj.weight", interleaved_heads), "att")
    yield ("embedding times √d", SCALED, {"factor": W**0.5}, None,
           "emb|layers.0 ")


def twice(name, wrong, change, planted, seed=0):
    """An encoder of a framework twice, of which the second is wrong."""
    (a, *rest), (b, *_) = (ported(
        of_nn, encoder_of, name, {"act": "gelu", "eps": 1e-5} | each, how,
        planted, seed)[1] for each, how in (({}, None), (wrong, change)))
    return (a, *rest), (b, *rest)


def within():
    """Faults of an encoder against the same in one framework."""
    for name in KITS:
        for what, causes, wrong, change, at in of_encoders(
                "gelu", "1e-05"):
            yield Planted(name, what, causes, at=at, models=functools.partial(
                twice, name, wrong, change))


def across():
    """Every fault of every port."""
    for original, of, port, faults in (
            ("BERT", of_bert, encoder_of, [
                *of_encoders("gelu", "1e-12"), *of_berts()]),
            ("torch.nn", of_nn, encoder_of, [
                *of_encoders("relu", "1e-05", fused=True)]),
            ("Llama", of_llama, llama_of, [*of_llamas()])):
        for name in KITS:
            for what, causes, wrong, change, at in faults:
                if original == "BERT":
                    wrong = {"act": "gelu", "eps": 1e-12} | wrong
                yield Planted(
                    f"{original} to {name}", what, causes, at=at, across=True,
                    models=functools.partial(
                        ported, of, port, name, wrong, change))
