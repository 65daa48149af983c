"""Conformance with the frameworks' own layers and models, and losses."""

import numpy as np
import pytest

from transformer_contract import weights
from transformer_contract.schema import schema
from parity import ports
from parity.check import cases
from parity_tests.support.native import (
    BATCH, CONFIG, D, HEADS, MEMORY, WEIGHTS, X, equal, gap, jax_only,
    keras_only, load_torch_attention, on_tensorflow, reference, torch_mask,
    torch_only)


# Whole layers and models of torch


def variant(residual="post", final_norm=True, activation="relu"):
    """A config that nn.Transformer can have: one epsilon for all norms."""
    return CONFIG.replace(
        residual=residual, final_norm=final_norm, activation=activation,
        norm_eps=1e-5, final_norm_eps=1e-5)


def load_torch_layer(layer, arrays):
    """Our arrays of an encoder or decoder layer into torch's."""
    import torch
    attentions = {"self_attention": (layer.self_attn, layer.norm1)}
    last = layer.norm2
    if hasattr(layer, "multihead_attn"):
        attentions["cross_attention"] = layer.multihead_attn, layer.norm2
        last = layer.norm3
    norms = {"feed_forward": last}
    for name, (attention, norm) in attentions.items():
        load_torch_attention(attention, weights.select(arrays, f"{name}."))
        norms[name] = norm
    for name, norm in norms.items():
        load_torch_norm(norm, weights.select(arrays, f"{name}_residual.norm."))
    for ours, linear in (("inner", layer.linear1), ("outer", layer.linear2)):
        linear.load_state_dict({
            "weight": torch.from_numpy(
                arrays[f"feed_forward.{ours}.kernel"].T.copy()),
            "bias": torch.from_numpy(arrays[f"feed_forward.{ours}.bias"])})


def load_torch_norm(norm, arrays):
    import torch
    norm.load_state_dict({"weight": torch.from_numpy(arrays["scale"]),
                          "bias": torch.from_numpy(arrays["bias"])})


def torch_settings(config):
    """The keywords by which torch's layers become ours, without dropout."""
    import torch
    return {
        "dim_feedforward": config.d_ff, "dropout": 0.0, "batch_first": True,
        "norm_first": config.residual == "pre", "dtype": torch.float64,
        "activation": config.activation, "layer_norm_eps": config.norm_eps}


def torch_inputs():
    """x [B T D], memory, and what may not be attended to in either."""
    import torch
    return (torch.from_numpy(X), torch.from_numpy(MEMORY),
            torch_mask(BATCH.target_mask, cases.TARGET),
            torch.from_numpy(~BATCH.source_mask[:, 0, 0]))


@torch_only
@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("residual", ["post", "pre"])
def test_torch_layers(port, residual, activation):
    """norm_first=True is our pre-norm; while training, queries without keys
    are ours too, for then torch takes the path that answers 0 (R2)."""
    import torch
    config = variant(residual, activation=activation)
    settings = torch_settings(config)
    x, memory, hidden, padding = torch_inputs()
    part = weights.select(WEIGHTS, "encoder.layers.0.")
    encoder = torch.nn.TransformerEncoderLayer(D, HEADS, **settings)
    load_torch_layer(encoder, part)
    truth = reference("encoder_layer", MEMORY, BATCH.source_mask,
                      config=config, arrays=part)["output"]
    found = encoder(memory, src_key_padding_mask=padding).detach()
    assert equal(found, truth)
    part = weights.select(WEIGHTS, "decoder.layers.0.")
    decoder = torch.nn.TransformerDecoderLayer(D, HEADS, **settings)
    load_torch_layer(decoder, part)
    truth = reference("decoder_layer", X, MEMORY, BATCH.source_mask,
                      BATCH.target_mask, config=config, arrays=part)["output"]
    found = decoder(x, memory, tgt_mask=hidden,
                    memory_key_padding_mask=padding).detach()
    assert equal(found, truth)


def torch_transformer(config, arrays, with_norms=True):
    """nn.Transformer's answer to X and MEMORY, with our arrays in it."""
    import torch
    model = torch.nn.Transformer(
        D, HEADS, config.n_encoder_layers, config.n_decoder_layers,
        **torch_settings(config))
    for name, stack in (("encoder", model.encoder), ("decoder", model.decoder)):
        for i, layer in enumerate(stack.layers):
            load_torch_layer(
                layer, weights.select(arrays, f"{name}.layers.{i}."))
        if with_norms:
            load_torch_norm(stack.norm, weights.select(arrays, f"{name}.norm."))
        else:
            stack.norm = None
    x, memory, hidden, padding = torch_inputs()
    return model(memory, x, tgt_mask=hidden, src_key_padding_mask=padding,
                 memory_key_padding_mask=padding).detach().numpy()


def stacks(config, arrays):
    """Our encoder's output read by our decoder."""
    memory = reference("encoder", MEMORY, BATCH.source_mask, config=config,
                       arrays=weights.select(arrays, "encoder."))["output"]
    return reference("decoder", X, memory, BATCH.source_mask,
                     BATCH.target_mask, config=config,
                     arrays=weights.select(arrays, "decoder."))["output"]


@torch_only
@pytest.mark.filterwarnings("ignore:enable_nested_tensor is True")
@pytest.mark.parametrize("residual", ["post", "pre"])
def test_transformer(port, residual):
    """nn.Transformer ends each stack in a norm, after post-norm too (R11).

    It is ours with final_norm=True, and is so without one only when its norms
    are taken out.
    """
    config = variant(residual)
    bare = config.replace(final_norm=False)
    arrays = weights.probe_weights(config)
    without = {name: array for name, array in arrays.items()
               if name in schema(bare)}
    found = torch_transformer(config, arrays)
    assert equal(found, stacks(config, arrays))
    assert 0.1 < gap(found, stacks(bare, without)) < 10
    assert equal(torch_transformer(bare, without, with_norms=False),
                 stacks(bare, without))


# The loss

LOGITS = cases.values(
    "logits", cases.BATCH, cases.TARGET, CONFIG.target_vocab)


def our_loss(labels, smoothing, pad_id=CONFIG.pad_id):
    return ports.engine("numpy").loss(
        LOGITS, labels, pad_id, smoothing, "uniform")


@torch_only
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_torch_cross_entropy(port, smoothing):
    """Ours, but NaN where all is padding and ours is 0 (R22, R23)."""
    import torch

    def theirs(labels):
        return torch.nn.functional.cross_entropy(
            torch.from_numpy(LOGITS).flatten(0, 1),
            torch.from_numpy(labels).flatten(), ignore_index=CONFIG.pad_id,
            label_smoothing=smoothing)
    assert equal(theirs(BATCH.target), our_loss(BATCH.target, smoothing))
    nothing = np.full_like(BATCH.target, CONFIG.pad_id)
    assert theirs(nothing).isnan()
    assert our_loss(nothing, smoothing) == 0


@jax_only
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_optax_cross_entropy(port, smoothing):
    """Ours, once its losses are averaged over what is not padding (R23)."""
    optax = pytest.importorskip("optax", reason="not checked: no optax")
    import jax.numpy as jnp
    labels = optax.smooth_labels(
        jnp.eye(CONFIG.target_vocab)[BATCH.target], smoothing)
    losses = optax.softmax_cross_entropy(jnp.asarray(LOGITS), labels)
    kept = BATCH.target != CONFIG.pad_id
    assert equal(np.mean(np.asarray(losses)[kept]),
                 our_loss(BATCH.target, smoothing))


@keras_only
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_keras_cross_entropy(port, smoothing):
    """Ours without padding; with a sample weight it divides by all (R23)."""
    import keras
    on_tensorflow()
    labels = cases.ids("target", cases.BATCH, cases.TARGET,
                       CONFIG.target_vocab)
    loss = keras.losses.CategoricalCrossentropy(
        from_logits=True, label_smoothing=smoothing, dtype="float64")

    def theirs(labels, weight=None):
        return keras.ops.convert_to_numpy(
            loss(np.eye(CONFIG.target_vocab)[labels], LOGITS, weight))
    # A label of -1 does not occur, so that nothing is padding.
    assert equal(theirs(labels), our_loss(labels, smoothing, pad_id=-1))
    kept = BATCH.target != CONFIG.pad_id
    share = our_loss(BATCH.target, smoothing) * kept.mean()
    assert equal(theirs(BATCH.target, kept.astype(float)), share)
