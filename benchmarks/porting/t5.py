"""Faults of T5 and of GPT-2."""

from benchmarks.porting.formulas import (
    centred, masks, next_seen, norm, unbiased, without)
from benchmarks.porting.hugging_face import W
from benchmarks.porting.planted import Planted
from benchmarks.porting.ways import (
    REORDERED, SCALED, SCALES, TRANSPOSED, UNMASKED, activation, attribute,
    by_head, exchanged, first_embedding, interleaved_heads, places, roll,
    scaled, transposed, weights, wrapped)


def t5():
    """Faults of T5 v1.1."""
    def of(name, causes, config=None, change=None):
        return Planted("t5", name, causes, config or {}, change)
    attention = "T5Attention"

    def bucketed(function):
        def change(model):
            for module in model.modules():
                if attention in type(module).__name__:
                    module._relative_position_bucket = function(
                        module._relative_position_bucket)
        return change
    yield of("equal", [])
    yield of("ε 1e-5", [
        ("epsilon", "1e-06", "1e-05")], {"layer_norm_epsilon": 1e-5})
    yield of("1 + w", [("scale", "used", "1 is added")], change=wrapped(
        "T5LayerNorm", norm(lambda m, x, given: (
            m.weight + 1) * given * (x.pow(2).mean(-1, keepdim=True)
                                     + m.variance_epsilon).rsqrt())))
    yield of("LayerNorm", [("mean", "ignored", "subtracted")],
             change=wrapped("T5LayerNorm", norm(centred)))
    yield of("gelu for its tanh", [("activation", "gelu by tanh", "gelu")],
             change=attribute("GatedActDense", act=gelu_exact))
    yield of("relu for gelu", activation("gelu by tanh", "relu"),
             {"feed_forward_proj": "gated-relu"})
    yield of("gate and up exchanged", [("gate", "as it is", "exchanged")],
             change=exchanged("wi_0.weight", "wi_1.weight"))
    yield of("scores divided", [("scale", "1", "1/√d_k")],
             change=attribute(attention, scaling=8**-0.5))
    yield of("distances' sign", [
        ("buckets", "bidirectional", "of the other sign"),
        ("buckets", "causal", "of the other sign")], change=bucketed(
        lambda old: lambda relative_position, **k: old(
            -relative_position, **k)))
    yield of("buckets of a causal stack", [
        ("buckets", "bidirectional", "causal")],
             change=bucketed(lambda old: lambda *a, bidirectional, **k: old(
                 *a, bidirectional=False, **k)))
    yield of("buckets of the encoder", [
        ("buckets", "causal", "bidirectional")],
             change=bucketed(lambda old: lambda *a, bidirectional, **k: old(
                 *a, bidirectional=True, **k)))
    yield of("distances off by one", [
        ("buckets", "bidirectional", "of distances one more"),
        ("buckets", "causal", "of distances one more")],
             change=bucketed(lambda old: lambda relative_position, **k: old(
                 relative_position - 1, **k)))
    yield of("greatest distance 64", [("greatest distance", "12", "64")],
             {"relative_attention_max_distance": 64})
    yield of("no mask", UNMASKED,
             change=wrapped(attention, masks(without)))
    yield of("value transposed in heads", REORDERED,
             change=weights(("SelfAttention.v.weight", interleaved_heads)))
    yield of("key and value exchanged", [
        ("key and value", "as they are", "swapped")],
             change=exchanged(".k.weight", ".v.weight"))
    yield of("bias in the first layer only", [("factor", "1", "0")],
             change=wrapped("T5LayerSelfAttention", unbiased))
    yield of("output scaled", [("factor", "0.204124", "1")],
             {"scale_decoder_outputs": False})
    yield of("embedding times √d", SCALED,
             change=scaled_embedding)


def gelu_exact(old):
    """The exact GELU as a module."""
    import torch
    return torch.nn.GELU()


def scaled_embedding(model):
    """The token embedding times √d_model."""
    wrapped("Embedding", scaled(W**0.5))(model.encoder.embed_tokens)


def gpt2():
    """Faults of GPT-2, whose projections are packed."""
    def of(name, causes, config=None, change=None):
        return Planted("gpt2", name, causes, config or {}, change)
    attention = "GPT2Attention"
    yield of("equal", [])
    yield of("ε 1e-6", [
        ("epsilon", "1e-05", "1e-06")], {"layer_norm_epsilon": 1e-6})
    for word in ("gelu", "relu", "silu"):
        yield of(word, activation("gelu by tanh", word),
                 {"activation_function": word})
    for word, scale in SCALES:
        if word == "1":  # the model has a switch for it
            continue
        yield of(f"scale {word}", [("scale", "1/√d_k", word)],
                 change=attribute(attention, scaling=scale))
    yield of("scale 1", [
        ("scale", "1/√d_k", "1")], {"scale_attn_weights": False})
    yield of("the next is seen", [
        ("mask", "", "off by one, the next place is seen in b")],
             change=wrapped(attention, masks(next_seen)))
    yield of("no mask", [("mask", "", "ignored in b")],
             change=wrapped(attention, masks(without)))
    yield of("key, value, query", [
        *REORDERED, ("bias", "", "in b the same numbers in another order")],
             change=weights(("c_attn.weight", roll(W)),
                            ("c_attn.bias", roll(W))))
    yield of("packed head by head", [
        *REORDERED, ("bias", "", "in b the same numbers in another order")],
             change=weights(("c_attn.weight", by_head),
                            ("c_attn.bias", by_head)))
    yield of("output transposed", TRANSPOSED,
             change=weights(("attn.c_proj.weight", transposed)))
    yield of("positions from 1", [("first position", "0", "1")], change=wrapped(
        "GPT2Model", lambda module, forward: lambda *a, **k: forward(
            *a, **k | {"position_ids": places(1)})))
    yield of("embedding times √d", SCALED,
             change=first_embedding)
