"""keras_hub's BERT, which gets Hugging Face's weights, and what is wrong."""

import numpy as np

from benchmarks.porting.hugging_face import F, H, V, W
from benchmarks.porting.kits import kit
from benchmarks.porting.ports import ENCODER

#: keras_hub's names of an encoder's parts.
PARTS = {"norm1": "_self_attention_layer_norm",
         "norm2": "_feedforward_layer_norm",
         "inner": "_feedforward_intermediate_dense",
         "outer": "_feedforward_output_dense"}


def becomes(layer, make):
    """What a layer computes is made of what it computed."""
    layer.call = make(layer.call)


def filled(layer, arrays):
    """Its weights: kernels [out, in] turned round, and cut into heads."""
    layer.set_weights([
        np.reshape(array.T, variable.shape)
        for array, variable in zip(arrays, layer.weights, strict=True)])


def projections(attention, arrays):
    """Those of an attention's query, key, value and output."""
    for part, each in zip(("query", "key", "value", "output"), arrays):
        filled(getattr(attention, f"_{part}_dense"), each)


def encoder(arrays, wrong):
    """A BERT.

    Args:
        arrays: as of ``ports.encoder``.
        wrong: fields of ENCODER.
    """
    import keras_hub
    s = ENCODER | wrong
    model = keras_hub.models.BertBackbone(
        V, 2, H, W, F, dropout=0.0, max_sequence_length=16, dtype="float64")
    for name, layer in (("tok", model.token_embedding),
                        ("seg", model.segment_embedding),
                        ("pos", model.position_embedding)):
        layer.set_weights([arrays[name]])
    filled(model.embeddings_layer_norm, arrays["norm0"])
    filled(model.pooled_dense, [np.eye(W), np.zeros(W)])
    model.embeddings_layer_norm.epsilon = s["eps0"]
    becomes(model.token_embedding, lambda old: (
        lambda ids: old(ids) * s["factor"]))
    becomes(model.position_embedding, lambda old: (
        lambda x: old(x, start_index=s["first"])))
    for i, layer in enumerate(model.transformer_layers):
        attention = layer._self_attention_layer
        projections(attention, [arrays[f"{i}.{part}"] for part in "qkvo"])
        for name, part in PARTS.items():
            filled(getattr(layer, part), arrays[f"{i}.{name}"])
        for name in ("norm1", "norm2"):
            getattr(layer, PARTS[name]).epsilon = s["eps"]
        layer._feedforward_intermediate_dense.activation = (
            kit("keras").act[s["act"]])
        layer.normalize_first = s["pre"]
        attention._inverse_sqrt_key_dim = s["scale"]
        if s["over"] != -1:
            attention._dropout = 1e-9  # Keras' own way around its fused call
            attention._softmax.axis = s["over"]
        masked(attention, s["mask"])
    return model


def masked(attention, change):
    """Keras' attention by another mask, or None for none at all."""
    old = attention._compute_attention

    def attend(q, k, v, mask=None, *rest, **more):
        return old(q, k, v, change(mask) if change else None, *rest, **more)
    attention._compute_attention = attend
