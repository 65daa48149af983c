"""Faults of BERT, BART and Marian."""

from benchmarks.porting.formulas import masks, without
from benchmarks.porting.hugging_face import W
from benchmarks.porting.planted import Planted
from benchmarks.porting.ways import (
    REORDERED, SCALED, SCALES, TRANSPOSED, UNMASKED, UNSCALED, activation,
    attribute, exchanged, first_embedding, interleaved_heads, places, scaled,
    transposed, weights, wrapped)


def encoders():
    """Faults of BERT and of the encoders of BART and Marian."""
    def of(family):
        return lambda name, causes, config=None, change=None: Planted(
            family, name, causes, config or {}, change)
    bert, bart, marian = of("bert"), of("bart"), of("marian")
    for make, attention, field, eps in (
            (bert, "BertSelfAttention", "hidden_act", "1e-12"),
            (bart, "BartAttention", "activation_function", "1e-05"),
            (marian, "MarianAttention", "activation_function", "1e-05")):
        yield make("equal", [])
        yield make("ε 1e-6", [("epsilon", eps, "1e-06")],
                   change=attribute("LayerNorm", eps=1e-6))
        for word in ("gelu_new", "relu", "silu"):
            if make is not marian or word != "silu":
                yield make(word, activation("gelu", {
                    "gelu_new": "gelu by tanh"}.get(word, word)),
                    {field: word})
        for word, scale in SCALES:
            yield make(f"scale {word}", [("scale", "1/√d_k", word)],
                       change=attribute(attention, scaling=scale))
        yield make("no mask", UNMASKED,
                   change=wrapped(attention, masks(without)))
        query = "query" if make is bert else "q_proj"
        key = "key" if make is bert else "k_proj"
        yield make("query transposed", TRANSPOSED,
                   change=weights((f"{query}.weight", transposed)))
        yield make("query and key exchanged", [
            ("query and key", "as they are", "swapped")],
                   change=exchanged(f"{query}.weight", f"{key}.weight"))
        yield make("query's heads by feature", REORDERED,
                   change=weights((f"{query}.weight", interleaved_heads)))
        yield make("query's bias missing", [("bias", "", "zero in b")],
                   change=weights((f"{query}.bias", lambda b: 0 * b)))
        yield make("embedding times √d", SCALED,
                   change=wrapped("WordEmbedding" if make is bart
                                  else "_", scaled(W**0.5))
                   if make is bart else first_embedding)
    yield bert("positions from 2", [
        ("first position", "0", "2")], change=wrapped(
        "BertEmbeddings", lambda module, forward: lambda *a, **k: forward(
            *a, **k | {"position_ids": places(2)})))
    yield bert("dropout left on", [("dropout", "off", "on")],
               change=lambda model: model.bert.embeddings.train())
    yield bart("positions from 0", [("first position", "2", "0")],
               change=attribute("LearnedPositional", offset=0))
    yield bart("scaled embedding", SCALED,
               {"scale_embedding": True})
    yield marian("unscaled embedding", UNSCALED,
                 {"scale_embedding": True})
    yield marian("positions from 1", [
        ("first position", "0", "1")], change=wrapped(
        "SinusoidalPositional", lambda module, forward: (
            lambda input_ids_shape, past_key_values_length=0, **more: forward(
                input_ids_shape, past_key_values_length + 1, **more))))
