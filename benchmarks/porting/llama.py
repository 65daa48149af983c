"""Faults of Llama, with grouped heads and float32 inside."""

from benchmarks.porting.formulas import (
    centred, clipped, in_float64, itself_hidden, masks, next_seen, norm,
    outside, plus_one, repeated, turned, without)
from benchmarks.porting.planted import NOBODYS, Planted
from benchmarks.porting.ways import (
    REORDERED, SCALED, SCALES, TRANSPOSED, activation, attribute, exchanged,
    first_embedding, interleaved_heads, patched, shifted, transposed, weights,
    wrapped)
from parity.comparison.result import FLOAT32


def llama():
    """Faults of Llama, with grouped heads."""
    def of(name, causes, config=None, change=None, **more):
        return Planted("llama", name, causes, config or {}, change, **more)
    attention = "LlamaAttention"
    rope = lambda theta, **more: {"rope_parameters": {  # noqa: E731
        "rope_type": "default", "rope_theta": theta, **more}}
    yield of("equal", [])
    yield of("ε 1e-5", [("epsilon", "1e-06", "1e-05")], {"rms_norm_eps": 1e-5})
    yield of("ε 1e-8", [("epsilon", "1e-06", "1e-08")], {"rms_norm_eps": 1e-8})
    yield of("ε outside", [
        ("epsilon's place", "inside the root", "outside the root")],
             change=wrapped("RMSNorm", norm(outside)))
    yield of("1 + w", [("scale", "used", "1 is added")],
             change=wrapped("RMSNorm", norm(plus_one)))
    yield of("LayerNorm", [("mean", "ignored", "subtracted")],
             change=wrapped("RMSNorm", norm(centred)))
    yield of("a norm nobody has", NOBODYS,
             change=wrapped("RMSNorm", norm(clipped)))
    yield of("norms in float64", [
        ("precision inside", "in float32", "in float64")],
        change=wrapped("RMSNorm", norm(in_float64)), verdict=FLOAT32)
    yield of("θ 500000", [("rotary base", "10000", "500000")], rope(500000.0))
    yield of("θ 1000", [("rotary base", "10000", "1000")], rope(1000.0))
    yield of("positions linearly scaled", [("rotary factor", "1", "2")],
             rope(10000.0, rope_type="linear", factor=2.0))
    yield of("positions from 1", [("first position", "0", "1")],
             change=wrapped("LlamaRotaryEmbedding", shifted(1)))
    yield of("interleaved", [
        ("rotary pairs", "in halves", "interleaved")], change=patched(
        attention, apply_rotary_pos_emb=turned("interleaved")))
    yield of("turned backwards", [
        ("rotary direction", "forwards", "backwards")],
             change=patched(attention, apply_rotary_pos_emb=turned(sign=-1)))
    yield of("queries not turned", [
        ("rotary on", "queries and keys", "keys")], change=patched(
        attention, apply_rotary_pos_emb=turned(queries=False)))
    yield of("keys not turned", [
        ("rotary on", "queries and keys", "queries")], change=patched(
        attention, apply_rotary_pos_emb=turned(keys=False)))
    yield of("no rotary", [
        ("rotary on", "queries and keys", "neither")], change=patched(
        attention, apply_rotary_pos_emb=turned(queries=False, keys=False)))
    yield of("groups in turn", [
        ("shared heads", "in order", "in turn")], change=patched(
        attention, repeat_kv=repeated(lambda h, heads, groups: h % groups)))
    yield of("groups in reverse", [("shared heads", "in order", "in reverse")],
             change=patched(attention, repeat_kv=repeated(
                 lambda h, heads, groups: (heads - 1 - h) * groups // heads)))
    yield of("all the first key", [("shared heads", "in order", "the first")],
             change=patched(attention, repeat_kv=repeated(
                 lambda h, heads, groups: 0)))
    for word, scale in SCALES:
        yield of(f"scale {word}", [("scale", "1/√d_k", word)],
                 change=attribute(attention, scaling=scale))
    yield of("gelu for silu", [
        ("activation", "silu", "gelu")], {"hidden_act": "gelu"})
    yield of("relu for silu", activation("silu", "relu"),
             {"hidden_act": "relu"})
    yield of("gate and up exchanged", [("gate", "as it is", "exchanged")],
             change=exchanged("gate_proj.weight", "up_proj.weight"))
    yield of("the next is seen", [
        ("mask", "", "off by one, the next place is seen in b")],
             change=wrapped(attention, masks(next_seen)))
    yield of("itself hidden", [
        ("mask", "", "off by one, the place itself is hidden in b")],
             change=wrapped(attention, masks(itself_hidden)))
    yield of("no mask", [("mask", "", "ignored in b")],
             change=wrapped(attention, masks(without)))
    yield of("query transposed", TRANSPOSED,
             change=weights(("q_proj.weight", transposed)))
    yield of("key and value exchanged", [
        ("key and value", "as they are", "swapped")],
             change=exchanged("k_proj.weight", "v_proj.weight"))
    yield of("query's heads by feature", REORDERED,
             change=weights(("q_proj.weight", interleaved_heads)))
    yield of("embedding times √d", SCALED,
             change=first_embedding)
